"""The table of operator kinds."""

from __future__ import annotations

from symflops.ops.attention import Attention
from symflops.ops.bilinear import Bilinear
from symflops.ops.convolution import Conv
from symflops.ops.elementwise import Add, Detach, Map, Mul, Zeros
from symflops.ops.kind import Kind
from symflops.ops.linear import Linear
from symflops.ops.lookup import Embedding, RawParameter
from symflops.ops.matmul import MatMul
from symflops.ops.norms import Norm
from symflops.ops.reshape import Concat, Split, View
from symflops.ops.scan import Scan
from symflops.ops.stacks import Gather, Pop, Push
from symflops.ops.triangular import TriangularInverse, TriangularSolve

ALL: tuple[Kind, ...] = (
    Linear(),
    Conv(),
    Embedding(),
    RawParameter(),
    Norm("rms_norm", bias=False),
    Norm("layer_norm", bias=True),
    Norm("group_norm", bias=True),
    Norm("batch_norm", bias=True),
    Attention(),
    MatMul(),
    Bilinear(),
    Scan(),
    TriangularSolve(),
    TriangularInverse(),
    Mul(),
    Add(),
    Map(),
    Detach(),
    Zeros(),
    Concat(),
    Split(),
    View(),
    Push(),
    Pop(),
    Gather(),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in ALL}
