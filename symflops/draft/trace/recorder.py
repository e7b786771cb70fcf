"""What is known of tensors while a module runs: the value of each, by identity and by the storage that it is a view of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from symflops.draft.trace.nodes import Node, Value
from symflops.witness.outputs import tensors_in
from symflops.witness.tensors import needed

ADDS = ("add", "add_", "sub", "sub_", "index_add", "index_add_", "scatter_add", "scatter_add_")
NORMS = {
    "native_layer_norm": "layer_norm", "native_group_norm": "group_norm", "native_batch_norm": "batch_norm",
    "cudnn_batch_norm": "batch_norm", "_native_batch_norm_legit": "batch_norm",
    "_native_batch_norm_legit_no_training": "batch_norm",
}  # fmt: skip


class Recorder:
    """What is known of tensors while a module runs."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self.nodes: list[Node] = []
        self.values: dict[int, Value] = {}
        self.inputs: dict[int, tuple[str, ...]] = {}
        self.written: dict[int, list[Value]] = {}
        self.kept: list[Any] = []
        self.joins: dict[frozenset[int], int] = {}
        self.closure: list[int] = []
        self.paths: list[str] = [""]
        self.names = names
        self.parameter_nodes: dict[str, int] = {}
        torch = needed("torch")
        self.torch = torch
        self.custom = needed("torch.autograd.function").BackwardCFunction

    # values

    def node(self, kind: str, operands: tuple[Value, ...], **fields: Any) -> Node:
        """A new node at the current path."""
        made = Node(len(self.nodes), kind, fields.pop("path", self.paths[-1]), operands, **fields)
        self.nodes.append(made)
        reach = 1 << made.id
        if kind == "join":
            for value in operands:
                reach |= self.closure[value] if value is not None and self.nodes[value].kind != "parameter" else 0
        self.closure.append(reach)
        return made

    def join(self, values: Any, word: str, shape: tuple[int, ...]) -> Value:
        """One value that depends on all of ``values``: those that another one holds already add nothing."""
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
        """The node of a parameter, made when it is first read."""
        name = self.names.get(id(tensor))
        if name is None:
            return None
        if name not in self.parameter_nodes:
            node = self.node("parameter", (), path=name, shapes=(tuple(tensor.shape),))
            self.parameter_nodes[name] = node.id
            self.kept.append(tensor)
        return self.parameter_nodes[name]

    def whole(self, tensor: Any) -> Value:
        """The value of a tensor, gradients or not."""
        parameter = self.parameter(tensor)
        if parameter is not None:
            return parameter
        value = self.values.get(id(tensor))
        written = self.written.get(storage_of(tensor))
        return self.join([value, *written], "add", tuple(tensor.shape)) if written else value

    def used(self, tensor: Any) -> Value:
        """The value of a tensor as an operand: nothing where no gradient goes that way."""
        value = self.whole(tensor)
        if value is None or not self.torch.is_grad_enabled():
            return value
        if not tensor.requires_grad:
            return None
        if self.nodes[value].quiet and isinstance(tensor.grad_fn, self.custom):
            self.wake(value)
        return value

    def wake(self, value: int) -> None:
        """What ran without gradients in a custom function has them after all."""
        waiting = [value]
        while waiting:
            node = self.nodes[waiting.pop()]
            if node.quiet:
                node.quiet = False
                waiting += [operand for operand in node.operands if operand is not None]

    def data(self, tensors: Any) -> tuple[str, ...]:
        """The inputs that ``tensors`` were made of."""
        return tuple(dict.fromkeys(name for tensor in tensors for name in self.inputs.get(id(tensor), ())))

    def set(self, tensor: Any, value: Value, data: tuple[str, ...]) -> None:
        """Remember a tensor."""
        self.kept.append(tensor)
        self.values[id(tensor)] = value
        if data:
            self.inputs[id(tensor)] = data

    def input(self, name: str, tensor: Any) -> None:
        """An argument of the module."""
        node = self.node("input", (), path=name, shapes=(tuple(tensor.shape),), word=str(tensor.dtype).rpartition(".")[2])
        floating = tensor.is_floating_point() or tensor.is_complex()
        self.set(tensor, node.id if floating else None, (name,))

    # operators

    def call(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any, mutates: bool) -> None:
        """One call of an operator and what it returned."""
        tensors = list(tensors_of((args, tuple(kwargs.values()))))
        data = self.data(tensors)
        first = next(iter(tensors_in(out)), None)
        if first is None:
            return
        shape = tuple(first.shape)
        value = self.contraction(name, args, kwargs, shape, data)
        if value == -1:
            values = [self.used(tensor) for tensor in tensors]
            if name == "embedding" and values[0] is not None:
                indices = self.data([args[1]])
                shapes = (tuple(args[0].shape), tuple(args[1].shape), shape)
                value = self.node("embedding", (values[0],), shapes=shapes, data=(indices,)).id
            else:
                word = NORMS.get(name) or ("add" if name in ADDS else name if name in ("cat", "stack") else "mul")
                value = self.join(values, word, shape)
        if mutates:
            for tensor in tensors_in(out):
                key = storage_of(tensor)
                new = value
                if id(tensor) not in self.values and self.parameter(tensor) is None:
                    self.set(tensor, None, data)
                known = self.written.setdefault(key, [])
                if new is not None and new not in known:
                    kept = [old for old in known if old is not None and not self.closure[new] >> old & 1]
                    self.written[key] = [*kept, new]
                if data:
                    self.inputs[id(tensor)] = tuple(dict.fromkeys((*self.inputs.get(id(tensor), ()), *data)))
            return
        for tensor in tensors_in(out):
            self.set(tensor, value, data)

    def contraction(self, name: str, args: Any, kwargs: Any, shape: tuple[int, ...], data: tuple[str, ...]) -> Value:
        """The node of a contraction; -1 for any other operator."""
        if name in ("mm", "bmm", "addmm", "baddbmm"):
            added = () if name in ("mm", "bmm") else (args[0],)
            left, right = args[len(added) : len(added) + 2]
            batch = left.shape[0] if left.dim() == 3 else 1
            sizes = (batch, left.shape[-2], left.shape[-1], right.shape[-1])
            kind, options = "matmul", {}
        elif name in ("convolution", "_convolution"):
            left, right = args[0], args[1]
            added = (args[2],) if args[2] is not None else ()
            stride, padding, dilation, extra = (list(args[place]) for place in (3, 4, 5, 7))
            transposed, groups = args[6], args[8]
            outer, inner = right.shape[0], right.shape[1]
            places = left.shape[2:] if transposed else shape[2:]
            sizes = (left.shape[0], outer, inner, *right.shape[2:], *places)
            rank = right.dim() - 2
            kind = "conv"
            options = {
                "stride": each(stride, rank), "padding": each(padding, rank), "dilation": each(dilation, rank),
                "output_padding": each(extra, rank), "kernel": tuple(right.shape[2:]),
                "transposed": transposed, "groups": groups,
            }  # fmt: skip
        elif name == "linalg_solve_triangular":
            left, right, added = args[0], args[1], ()
            sizes = (prod(left.shape[:-2]), left.shape[-1], left.shape[-1], right.shape[-1])
            kind, options = "solve", {}
        else:
            return -1
        values = tuple(self.used(tensor) for tensor in (left, right, *added))
        made = self.node(
            kind, values, shapes=(*(tuple(one.shape) for one in (left, right, *added)), shape), sizes=sizes,
            data=tuple(self.data([tensor]) for tensor in (left, right)), options=options, word=name,
            quiet=not self.torch.is_grad_enabled(),
        )  # fmt: skip
        return made.id


def storage_of(tensor: Any) -> int:
    """What tells the storage of a tensor from others."""
    return int(tensor.untyped_storage()._cdata)


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors among arguments, in lists and mappings too."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_of(item)
    elif isinstance(value, needed("torch").Tensor):
        yield value


def each(values: Sequence[int], rank: int) -> tuple[int, ...]:
    """An option of a convolution for every axis; one number is for all."""
    return tuple(values) * rank if len(values) == 1 else tuple(values)


def named_tensors(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The tensors of an argument with names: its own, or with the place in a list or mapping after it."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from named_tensors(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from named_tensors(item, f"{name}.{position}")
    elif isinstance(value, needed("torch").Tensor):
        yield name, value
