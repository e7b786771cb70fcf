"""The table of operator kinds."""

from __future__ import annotations

from symflops.ops.attention import attention
from symflops.ops.convolution import conv
from symflops.ops.elementwise import act, add, concat, detach, map_values, mul, split, zeros
from symflops.ops.kind import Kind
from symflops.ops.linear import bilinear, linear
from symflops.ops.lookup import embedding, raw_parameter
from symflops.ops.matmul import matmul
from symflops.ops.norms import normalisation
from symflops.ops.reshape import expand, flatten_batch, identity, keep, pad, pad_batch, pool, reshape, select, slice_
from symflops.ops.scan import scan
from symflops.ops.stacks import gather, pop, push
from symflops.ops.triangular import triangular_inverse, triangular_solve

ALL: tuple[Kind, ...] = (
    linear,
    conv,
    embedding,
    raw_parameter,
    normalisation("rms_norm", bias=False),
    normalisation("layer_norm", bias=True),
    normalisation("group_norm", bias=True),
    normalisation("batch_norm", bias=True),
    attention,
    matmul,
    bilinear,
    scan,
    triangular_solve,
    triangular_inverse,
    mul,
    act,
    add,
    map_values,
    detach,
    zeros,
    concat,
    split,
    identity,
    keep,
    reshape,
    expand,
    pad,
    pool,
    slice_,
    select,
    pad_batch,
    flatten_batch,
    push,
    pop,
    gather,
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in ALL}
