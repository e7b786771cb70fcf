"""Records a run of a module as a graph of contractions, with the edges that carry gradients.

The module runs on the meta device under a dispatch mode, so any Python is fine. Tensors are known by identity and by the
storage that they view. Operators between contractions are reduced at once: a value that depends on one other value is that
value, and one that depends on several is a *join*. Only edges that carry a gradient count; a constant is no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import Any
from unittest.mock import patch

from symflops.draft.trace.steps import Node, Subject, Tape, Value
from symflops.verify.running import EVERY, dispatching, following, needed, plain_attention, summed_tensors, tensors_in

ADDS = ("add", "add_", "sub", "sub_", "index_add", "index_add_", "scatter_add", "scatter_add_")
NORMS = {
    "native_layer_norm": "layer_norm", "native_group_norm": "group_norm", "native_batch_norm": "batch_norm",
    "cudnn_batch_norm": "batch_norm", "_native_batch_norm_legit": "batch_norm",
    "_native_batch_norm_legit_no_training": "batch_norm",
}  # fmt: skip
PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}  # number of leading arguments that are added to the product


@dataclass(frozen=True, slots=True)
class Contraction:
    """A contraction found in an operator call.

    Attributes:
        kind: The kind of its node, such as ``matmul``.
        tensors: Its two factors, then the tensors added to its result.
        sizes: Its index sizes.
        options: Further fields of its node.
    """

    kind: str
    tensors: tuple[Any, ...]
    sizes: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


class Recorder:
    """Records operator calls as nodes, and tracks the value of every tensor.

    Tensors are known by their ``id``, storages by their address; a value is the id of a node, None for a constant.

    Attributes:
        nodes: The nodes so far.
        values: Tensor -> its value.
        inputs: Tensor -> names of the inputs of the module that it was computed from.
        written: Storage -> values that were written into it in place.
        kept: Tensors that must stay alive, so that no other gets their ``id``.
        joins: Values -> the join that combines them.
        closure: For each node, the set of nodes that it depends on, as the bits of an integer.
        paths: The paths of the modules that are running, innermost last.
        names: Tensor of a parameter -> name.
        parameter_nodes: Name of a parameter -> its node.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self.nodes: list[Node] = []
        self.values: dict[int, Value] = {}
        self.inputs: dict[int, tuple[str, ...]] = {}
        self.written: dict[int, list[int]] = {}
        self.kept: list[Any] = []
        self.joins: dict[frozenset[int], int] = {}
        self.closure: list[int] = []
        self.paths: list[str] = [""]
        self.names = names
        self.parameter_nodes: dict[str, int] = {}
        self.torch = needed("torch")
        self.custom = needed("torch.autograd.function").BackwardCFunction

    # values

    def node(self, kind: str, operands: tuple[Value, ...], **fields: Any) -> Node:
        """Append a node at the path of the module that is running, with further ``fields``, and return it."""
        node = Node(len(self.nodes), kind, fields.pop("path", self.paths[-1]), operands, **fields)
        self.nodes.append(node)
        reach = 1 << node.id
        if kind == "join":
            for value in operands:
                reach |= self.closure[value] if value is not None and self.nodes[value].kind != "parameter" else 0
        self.closure.append(reach)
        return node

    def join(self, values: Any, word: str, shape: tuple[int, ...]) -> Value:
        """Id of a node that depends on all ``values``: one of them that already does, else a new join.

        None if all values are constants. A join is an operation on several values that is not a contraction.
        """
        found = list(dict.fromkeys(value for value in values if value is not None))
        kept = [value for value in found if not any(other != value and self.closure[other] >> value & 1 for other in found)]
        if len(kept) < 2:
            return kept[0] if kept else None
        key = frozenset(kept)
        if key not in self.joins:
            quiet = not self.torch.is_grad_enabled()
            self.joins[key] = self.node("join", tuple(kept), word=word, shapes=(shape,), quiet=quiet).id
        return self.joins[key]

    def parameter(self, tensor: Any) -> int | None:
        """Node id of a parameter, created at its first read; None for any other tensor."""
        name = self.names.get(id(tensor))
        if name is None:
            return None
        if name not in self.parameter_nodes:
            self.parameter_nodes[name] = self.node("parameter", (), path=name, shapes=(tuple(tensor.shape),)).id
            self.kept.append(tensor)
        return self.parameter_nodes[name]

    def value_of(self, tensor: Any) -> Value:
        """Node id of a tensor's value, including in-place writes to its storage; None for a constant."""
        parameter = self.parameter(tensor)
        if parameter is not None:
            return parameter
        value = self.values.get(id(tensor))
        written = self.written.get(storage_of(tensor))
        return self.join([value, *written], "add", tuple(tensor.shape)) if written else value

    def used(self, tensor: Any) -> Value:
        """Node id of a tensor that an operator reads; None for a constant, to which no gradient flows."""
        value = self.value_of(tensor)
        if value is None or not self.torch.is_grad_enabled():
            return value
        if not tensor.requires_grad:
            return None
        if self.nodes[value].quiet and isinstance(tensor.grad_fn, self.custom):
            self.wake(value)
        return value

    def wake(self, value: int) -> None:
        """Mark node ``value`` and the nodes it was computed from as run with gradients.

        A custom autograd function runs without gradients inside, but passes gradients to its inputs.
        """
        waiting = [value]
        while waiting:
            node = self.nodes[waiting.pop()]
            if node.quiet:
                node.quiet = False
                waiting += [operand for operand in node.operands if operand is not None]

    def data(self, tensors: Any) -> tuple[str, ...]:
        """Names of the module's inputs that ``tensors`` were computed from."""
        return tuple(dict.fromkeys(name for tensor in tensors for name in self.inputs.get(id(tensor), ())))

    def remember(self, tensor: Any, value: Value, data: tuple[str, ...]) -> None:
        """Store the node id ``value`` of a tensor and the names ``data`` of the inputs it was computed from."""
        self.kept.append(tensor)
        self.values[id(tensor)] = value
        if data:
            self.inputs[id(tensor)] = data

    def input(self, name: str, tensor: Any) -> None:
        """Add a node for a module argument; an integer tensor counts as a constant."""
        node = self.node("input", (), path=name, shapes=(tuple(tensor.shape),), word=str(tensor.dtype).rpartition(".")[2])
        self.remember(tensor, node.id if tensor.is_floating_point() or tensor.is_complex() else None, (name,))

    # operators

    def call(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any, mutates: bool) -> None:
        """Record an operator call and the values of its results."""
        tensors = [tensor for _, tensor in named_tensors((args, kwargs), "")]
        results = list(tensors_in(out))
        if not results:
            return
        data = self.data(tensors)
        value = self.result(name, args, tensors, tuple(results[0].shape))
        keep = self.write if mutates else self.remember
        for tensor in results:
            keep(tensor, value, data)

    def result(self, name: str, args: tuple[Any, ...], tensors: Sequence[Any], shape: tuple[int, ...]) -> Value:
        """Node id of an operator call's result: a contraction, a differentiable lookup, or a join of operands."""
        contraction = contraction_of(name, args, shape)
        if contraction is not None:
            return self.contraction(name, contraction, shape)
        values = [self.used(tensor) for tensor in tensors]
        if name == "embedding" and values[0] is not None:
            shapes = (tuple(args[0].shape), tuple(args[1].shape), shape)
            return self.node("embedding", (values[0],), shapes=shapes, data=(self.data([args[1]]),)).id
        word = NORMS.get(name) or ("add" if name in ADDS else name if name in ("cat", "stack") else "mul")
        return self.join(values, word, shape)

    def contraction(self, name: str, found: Contraction, shape: tuple[int, ...]) -> int:
        """Add a node for a contraction, and return its id."""
        shapes = (*(tuple(one.shape) for one in found.tensors), shape)
        values = tuple(self.used(tensor) for tensor in found.tensors)
        data = tuple(self.data([tensor]) for tensor in found.tensors[:2])
        fields = {"shapes": shapes, "sizes": found.sizes, "data": data, "options": found.options, "word": name}
        return self.node(found.kind, values, **fields, quiet=not self.torch.is_grad_enabled()).id

    def write(self, tensor: Any, value: Value, data: tuple[str, ...]) -> None:
        """Store node ``value`` as written in place: all tensors on the storage of ``tensor`` now depend on it."""
        if id(tensor) not in self.values and self.parameter(tensor) is None:
            self.remember(tensor, None, data)
        known = self.written.setdefault(storage_of(tensor), [])
        if value is not None and value not in known:
            known[:] = [*(old for old in known if not self.closure[value] >> old & 1), value]
        if data:
            self.inputs[id(tensor)] = tuple(dict.fromkeys((*self.inputs.get(id(tensor), ()), *data)))


def storage_of(tensor: Any) -> int:
    """Address that identifies a tensor's storage."""
    return int(tensor.untyped_storage()._cdata)


def named_tensors(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Pairs (dotted name such as ``past.0.key``, tensor) for all tensors of a nested argument ``name``."""
    if isinstance(value, (Mapping, tuple, list)):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from named_tensors(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, needed("torch").Tensor):
        yield name, value


def contraction_of(name: str, args: Sequence[Any], shape: tuple[int, ...]) -> Contraction | None:
    """Contraction that an operator call with a result of ``shape`` performs; None for other operators."""
    if name in PRODUCTS:
        added = PRODUCTS[name]
        return product(*args[added : added + 2], *args[:added])
    if name in ("convolution", "_convolution"):
        return convolution(args, shape)
    if name == "linalg_solve_triangular":
        left, right = args[:2]
        return Contraction("solve", (left, right), (prod(left.shape[:-2]), left.shape[-1], left.shape[-1], right.shape[-1]))
    return None


def product(left: Any, right: Any, *added: Any) -> Contraction:
    """Contraction of a matrix product, batched or not."""
    batch = left.shape[0] if left.dim() == 3 else 1
    return Contraction("matmul", (left, right, *added), (batch, left.shape[-2], left.shape[-1], right.shape[-1]))


def convolution(args: Sequence[Any], shape: tuple[int, ...]) -> Contraction:
    """Contraction of a convolution of any rank, transposed or not."""
    value, kernel, bias, stride, padding, dilation, transposed, extra, groups = args[:9]
    places = value.shape[2:] if transposed else shape[2:]
    sizes = (value.shape[0], kernel.shape[0], kernel.shape[1], *kernel.shape[2:], *places)
    rank = kernel.dim() - 2
    options = {
        "stride": per_axis(stride, rank), "padding": per_axis(padding, rank), "dilation": per_axis(dilation, rank),
        "output_padding": per_axis(extra, rank), "kernel": tuple(kernel.shape[2:]),
        "transposed": transposed, "groups": groups,
    }  # fmt: skip
    return Contraction("conv", (value, kernel, *(() if bias is None else (bias,))), sizes, options)


def per_axis(values: Sequence[int], rank: int) -> tuple[int, ...]:
    """Values of a convolution option for each of ``rank`` axes; a single value is repeated."""
    return tuple(values) * rank if len(values) == 1 else tuple(values)


def taped(subject: Subject) -> tuple[Any, dict[str, Any], Tape]:
    """Build and run a subject; returns (module, argument -> value, tape)."""
    model, arguments = subject.build(), subject.arguments()
    needed("torch").manual_seed(0)
    return model, arguments, record(model, arguments)


def record(model: Any, arguments: Mapping[str, Any]) -> Tape:
    """Run a module on its arguments (name -> value) and return the tape.

    Floating-point arguments require a gradient during the run; otherwise values that depend on them alone would look like
    constants.
    """
    every = dict(model.named_parameters(remove_duplicate=False))
    names = {id(tensor): name for name, tensor in reversed(every.items())}
    tied = {name: names[id(tensor)] for name, tensor in every.items() if names[id(tensor)] != name}
    frozen = frozenset(name for name, tensor in model.named_parameters() if not tensor.requires_grad)
    recorder = Recorder(names)
    given = dict(named_tensors(arguments, ""))
    with requiring_gradients([tensor for tensor in given.values() if tensor.is_floating_point() and tensor.is_leaf]):
        for name, tensor in given.items():
            recorder.input(name, tensor)
        with (
            plain_attention(),
            following(model, recorder.paths),
            needed("torch").enable_grad(),
            guessing_values() as by_value,
            recording(recorder),
        ):
            output = model(**arguments)
        outputs = tuple(
            dict.fromkeys(value for tensor in summed_tensors(output, EVERY) if (value := recorder.used(tensor)) is not None)
        )
    shapes = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
    return Tape(recorder.nodes, outputs, shapes, frozen, frozenset(by_value), tied)


@contextmanager
def requiring_gradients(tensors: Sequence[Any]) -> Iterator[None]:
    """Context in which ``tensors`` require a gradient."""
    try:
        for tensor in tensors:
            tensor.requires_grad_(True)
        yield
    finally:
        for tensor in tensors:
            tensor.requires_grad_(False)


def recording(recorder: Recorder) -> Any:
    """Dispatch mode that executes every operator and records it in ``recorder``."""

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        mutates = any(one.alias_info is not None and one.alias_info.is_write for one in func._schema.arguments)
        recorder.call(func._schema.name.partition("::")[2], args, kwargs, out, mutates)
        return out

    return dispatching(call)


@contextmanager
def guessing_values() -> Iterator[set[tuple[str, str]]]:
    """Context that guesses tensor values on the meta device; yields the set of (operator, device) that ask.

    A truth value is true: modules ask for one in checks (are these positions in order, is this mask full), which usually
    hold. For the same reason no element of a tensor is zero. Autocast is ignored. A proof on real values must confirm these
    guesses.
    """
    torch = needed("torch")
    settings = needed("torch.fx.experimental._config")
    plain = torch.autocast
    by_value: set[tuple[str, str]] = set()

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        by_value.update((func._schema.name.partition("::")[2], device) for device in devices_asked(func, args))
        asked = func is torch.ops.aten._local_scalar_dense.default and args[0].device.type == "meta"
        return True if asked and args[0].dtype is torch.bool else func(*args, **kwargs)

    def autocast(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return nullcontext() if device_type == "meta" else plain(device_type, *args, **kwargs)

    with settings.patch(meta_nonzero_assume_all_nonzero=True), patch.object(torch, "autocast", autocast), dispatching(call):
        yield by_value


def devices_asked(func: Any, args: tuple[Any, ...]) -> set[str]:
    """Devices of the arguments whose values decide an operator's output shape or result; empty if none do."""
    tags = needed("torch").Tag
    if tags.dynamic_output_shape not in func.tags and tags.data_dependent_output not in func.tags:
        return set()
    chosen: Any = args
    if len(args) > 1 and isinstance(args[1], (list, tuple)):  # indexing by several tensors: only masks matter
        masks = needed("torch").bool, needed("torch").uint8
        chosen = [one for one in args[1] if getattr(one, "dtype", None) in masks]
    return {str(tensor.device.type) for _, tensor in named_tensors(chosen, "")}
