"""Stand-ins that let unmodified module code run with symbolic sizes, for a process that does nothing but trace.

PyTorch multiplies shapes symbolically, but some code turns a size into a plain integer and so fixes it: ``int(x)``,
``math.ceil``, C++ kernels that read plain sizes, initialisers that fill tensors. Each stand-in replaces work that no convention
counts, and keeps shape and gradient. :func:`install` changes PyTorch and the loaded libraries for the rest of the process.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from symflops.verify.running import needed

CONSTANTS = 4096
"""Elements of a constant tensor whose values PyTorch remembers, so that code may read them."""
LIBRARIES = ("torch.nn.modules.", "torch.nn.utils.", "transformers.", "diffusers.models.", "peft.tuners.")
"""Modules whose integers are shadowed, besides those of a class's own file."""
TYPED = ("tensor", "as_tensor", "zeros", "ones", "full", "empty", "arange", "zeros_like", "ones_like", "full_like", "cumsum")
"""Functions of PyTorch that are given ``int`` as a dtype."""
RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
NOT_SHADOWED = re.compile(r"(auto_factory|configuration_auto|masking_utils|import_utils|generic|hub|tokenization\w*)$")


def install(own: tuple[str, ...] = ()) -> None:
    """Install all stand-ins in this process; ``own`` names further modules whose code handles sizes."""
    torch = needed("torch")
    numbers.Integral.register(torch.SymInt)
    torch.SymInt.__deepcopy__ = lambda self, memo: self
    torch.SymInt.__copy__ = lambda self: self
    torch.SymInt.__hash__ = lambda self: hash(self.node.expr)  # arguments of functions that keep their results
    needed("torch.fx.experimental._config").meta_nonzero_assume_all_nonzero = True
    needed("torch._subclasses.fake_tensor").CONSTANT_NUMEL_LIMIT = CONSTANTS
    torch.compiler.is_compiling = lambda: False
    Integers.dtype = needed("numpy").dtype("int64")
    for kind in (torch.SymInt, torch.SymFloat):  # numpy's roots of objects
        kind.sqrt = lambda self: torch._sym_sqrt(torch.sym_float(self))
    floats_without_guards()
    replaced = without_initialisers()
    functional = torch.nn.functional
    for holder, name, stand_in in (
        (functional, "pad", padded),
        (functional, "interpolate", resized),
        (functional, "group_norm", group_normed),
        (functional, "bilinear", bilinear),
        (torch.Tensor, "masked_scatter", scattered),
        (torch, "norm_except_dim", normed),
        (torch, "_weight_norm", weighted),
        (torch, "linspace", spaced),
        (torch, "arange", stepped),
        (torch, "polar", polar),
        (torch.Tensor, "expand", expanded),
        *((torch._VF, name, recurrent) for name in RECURRENT),
        *((torch, name, typed) for name in TYPED),
        *((torch.Tensor, name, typed) for name in ("to", "type", "new_zeros", "new_ones", "new_full", "new_tensor")),
    ):
        before = getattr(holder, name)
        replaced[before] = stand_in(before)
        setattr(holder, name, replaced[before])
    shadow(own, replaced)


def symbolic(*values: Any) -> bool:
    """Whether a symbolic integer is among ``values``, or in their lists and shapes."""
    kind = needed("torch").SymInt
    return any(isinstance(value, kind) or (isinstance(value, (tuple, list)) and symbolic(*value)) for value in values)


def floats_without_guards() -> None:
    """A float that is read from a symbol, such as a square root, is a value and no condition on sizes."""
    node = needed("torch.fx.experimental.sym_node").SymNode
    read = node.guard_float
    node.guard_float = lambda self, file, line: read(self, file, line) if self.hint is None else float(self.hint)


def without_initialisers() -> dict[Any, Any]:
    """Parameters stay as they are allocated; ties between them are kept. Returns (initialiser -> what stands for it)."""
    torch = needed("torch")
    places = [torch.nn.init]
    if transformers := sys.modules.get("transformers"):
        places.append(needed("transformers.initialization"))
        transformers.PreTrainedModel.initialize_weights = lambda self, *_, **__: None
        transformers.GenerationConfig.from_model_config = classmethod(lambda kind, *_, **__: kind())
    replaced = {}
    for place in places:
        for name, function in list(vars(place).items()):
            if callable(function) and name.endswith("_") and not name.startswith("__"):
                replaced[function] = lambda tensor, *_, **__: tensor
                setattr(place, name, replaced[function])
    for kind in list(vars(torch.nn).values()):
        if isinstance(kind, type) and "reset_parameters" in vars(kind):
            setattr(kind, "reset_parameters", lambda self: None)  # noqa: B010  # typed as a plain class
    return replaced


def padded(original: Callable[..., Any]) -> Callable[..., Any]:
    """``F.pad`` with a constant: C++ reads plain sizes."""

    def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
        if mode != "constant" or not symbolic(input.shape, pad):
            return original(input, pad, mode, value)
        shape = list(input.shape)
        for axis in range(len(pad) // 2):
            shape[-1 - axis] = shape[-1 - axis] + pad[2 * axis] + pad[2 * axis + 1]
        return filled(input, shape)

    return pad


def filled(tensor: Any, shape: Any, *others: Any) -> Any:
    """Tensor of another shape through which gradients flow to ``tensor`` and to floating-point ``others``."""
    found = tensor.new_zeros(shape)
    for one in (tensor, *others):
        if one.is_floating_point() or one.is_complex():
            found = found + one.sum() * 0
    return found


def resized(original: Callable[..., Any]) -> Callable[..., Any]:
    """``F.interpolate``: C++ reads plain sizes."""
    torch = needed("torch")

    def interpolate(input: Any, size: Any = None, scale_factor: Any = None, *rest: Any, **options: Any) -> Any:
        if not symbolic(input.shape, size):
            return original(input, size, scale_factor, *rest, **options)
        axes = input.shape[2:]

        def each(given: Any) -> list[Any]:
            return list(given) if isinstance(given, (list, tuple)) else [given] * len(axes)

        def times(length: Any, factor: Any) -> Any:
            return length * int(factor) if factor == int(factor) else torch.sym_int(length * factor)

        sides = each(size) if size is not None else [times(*pair) for pair in zip(axes, each(scale_factor), strict=True)]
        return filled(input, (*input.shape[:2], *sides))

    return interpolate


def group_normed(original: Callable[..., Any]) -> Callable[..., Any]:
    """``F.group_norm``: the number of groups is a plain integer in C++."""

    def group_norm(input: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
        if not symbolic(num_groups):
            return original(input, num_groups, weight, bias, eps)
        if input.shape[1] % num_groups != 0:
            raise RuntimeError("the groups do not divide the channels")
        axes = [1] * (input.dim() - 2)
        found = input * 1 if weight is None else input * weight.view(-1, *axes)
        return found if bias is None else found + bias.view(-1, *axes)

    return group_norm


def scattered(original: Callable[..., Any]) -> Callable[..., Any]:
    """``Tensor.masked_scatter``: C++ reads plain sizes."""

    def masked_scatter(self: Any, mask: Any, source: Any) -> Any:
        if not symbolic(self.shape, source.shape):
            return original(self, mask, source)
        return filled(self, self.shape, source)

    return masked_scatter


def bilinear(original: Callable[..., Any]) -> Callable[..., Any]:
    """``F.bilinear``, which PyTorch's counter does not count: its kernel does not run without values."""

    def form(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
        found = filled(input1, (*input1.shape[:-1], weight.shape[0]), input2, weight)
        return found if bias is None else found + bias

    return form


def normed(original: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.norm_except_dim``: C++ reads plain sizes."""

    def norm(v: Any, pow: int = 2, dim: int = 0) -> Any:
        if not symbolic(v.shape):
            return original(v, pow, dim)
        return filled(v, [1 if axis != dim else side for axis, side in enumerate(v.shape)] if dim >= 0 else [])

    return norm


def weighted(original: Callable[..., Any]) -> Callable[..., Any]:
    """``torch._weight_norm``, a weight by its direction and length: C++ reads plain sizes."""
    return lambda v, g, dim=0: filled(v, v.shape, g) if symbolic(v.shape) else original(v, g, dim)


def spaced(original: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.linspace`` of plain numbers: a constant whose values can be read."""
    torch = needed("torch")

    def linspace(start: Any, end: Any, steps: Any, *rest: Any, **options: Any) -> Any:
        if type(steps) is not int or steps > CONSTANTS or not all(isinstance(one, (int, float)) for one in (start, end)):
            return original(start, end, steps, *rest, **options)
        return torch.tensor([start + (end - start) * place / max(1, steps - 1) for place in range(steps)])

    return linspace


def stepped(original: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.arange`` with a step that is a quotient of sizes: C++ reads plain numbers."""
    torch = needed("torch")

    def arange(*bounds: Any, **options: Any) -> Any:
        if not any(isinstance(one, torch.SymFloat) for one in bounds):
            return original(*bounds, **options)
        start, end, step = (0, *bounds, 1)[:3] if len(bounds) == 1 else (*bounds, 1)[:3]
        return torch.zeros(torch.sym_int(((end - start) / step).__ceil__()), **options)

    return arange


def polar(original: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.polar``: C++ reads plain sizes."""
    torch = needed("torch")

    def of(abs: Any, angle: Any) -> Any:
        return (abs * angle).to(torch.complex64) if symbolic(abs.shape, angle.shape) else original(abs, angle)

    return of


def expanded(original: Callable[..., Any]) -> Callable[..., Any]:
    """``Tensor.expand`` inside of PyTorch's own shape functions, where C++ reads plain sizes."""

    def expand(self: Any, *sizes: Any, **options: Any) -> Any:
        try:
            return original(self, *sizes, **options)
        except RuntimeError as error:
            if "concrete integers" not in str(error):
                raise
        sizes = tuple(sizes[0]) if isinstance(sizes[0], (list, tuple)) else sizes
        new = len(sizes) - self.dim()
        sides = [side if size == -1 else size for size, side in zip(sizes, (*[1] * new, *self.shape), strict=True)]
        strides = [
            0 if side == 1 and size != 1 else stride
            for size, side, stride in zip(sides, (*[1] * new, *self.shape), (*[0] * new, *self.stride()), strict=True)
        ]
        return self.as_strided(sides, strides)

    return expand


def recurrent(original: Callable[..., Any]) -> Callable[..., Any]:
    """LSTM, GRU and RNN layers: C++ runs one step after another, of a plain number.

    The same products run over all steps at once; the first step's state is that of the caller.
    """
    torch, linear = needed("torch"), needed("torch").nn.functional.linear

    def run(input: Any, state: Any, weights: Any, *rest: Any) -> Any:
        if not symbolic(input.shape) or len(rest) != 6:
            return original(input, state, weights, *rest)
        biases, layers, _, _, bidirectional, batch_first = rest
        states = state if isinstance(state, (tuple, list)) else (state,)
        steps = 1 if batch_first else 0
        each = len(weights) // (layers * (1 + bidirectional))
        values, left = input, list(weights)
        for layer in range(layers):
            found = []
            for direction in range(1 + bidirectional):
                own, left = left[:each], left[each:]
                begin = states[0][layer * (1 + bidirectional) + direction].unsqueeze(steps)
                gates = linear(values, own[0])
                inner = own[1].shape[1]
                before = gates.narrow(-1, 0, inner).narrow(steps, 1, gates.shape[steps] - 1)
                after = torch.cat([linear(begin, own[1]), linear(before, own[1])], steps).narrow(-1, 0, own[1].shape[0])
                width = states[-1].shape[-1]
                hidden = (gates + after).narrow(-1, 0, width)
                for bias in own[2:4] if biases else ():
                    hidden = hidden + bias.narrow(0, 0, width)
                if each in (3, 5):
                    hidden = linear(hidden, own[-1])
                found.append(hidden)
            values = torch.cat(found, -1)
        last = [one + values.sum() * 0 for one in states]
        return (values, *last)

    return run


def typed(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is given ``int`` as a dtype, for which :class:`Integers` stands."""
    torch = needed("torch")

    def plain(value: Any) -> Any:
        return torch.int64 if value is Integers else value

    return lambda *args, **options: original(*map(plain, args), **{name: plain(value) for name, value in options.items()})


class _IntegerType(type):
    """Makes ``Integers`` answer as ``int`` does, and keep symbols."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (int, needed("torch").SymInt))

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, (int, needed("torch").SymInt))

    def __call__(cls, value: Any = 0, *base: Any) -> Any:
        torch = needed("torch")
        if isinstance(value, torch.SymInt):
            return value
        return torch.sym_int(value) if isinstance(value, torch.SymFloat) else int(value, *base)


class Integers(metaclass=_IntegerType):
    """Stands for ``int`` in module code: a symbolic integer is one, and stays symbolic. numpy reads its ``dtype``."""

    dtype: Any = None


def symbolic_math() -> types.ModuleType:
    """A copy of :mod:`math` whose roots, roundings and ``log2`` keep symbols; ``log`` reads the value, under a guard."""
    torch, found = needed("torch"), types.ModuleType("math")
    vars(found).update(vars(math))

    def lift(name: str, function: Callable[[Any], Any]) -> None:
        plain = getattr(math, name)
        kinds = (torch.SymInt, torch.SymFloat)
        setattr(found, name, lambda value, *more: function(value) if isinstance(value, kinds) else plain(value, *more))

    lift("sqrt", lambda value: torch._sym_sqrt(torch.sym_float(value)))
    lift("ceil", lambda value: value if isinstance(value, torch.SymInt) else value.__ceil__())
    lift("floor", lambda value: value if isinstance(value, torch.SymInt) else value.__floor__())
    lift("log", lambda value: math.log(value.__index__() if isinstance(value, torch.SymInt) else float(value)))
    lift("log2", lambda value: torch._sym_log2(torch.sym_float(value)))
    return found


def shadow(own: tuple[str, ...], functions: Mapping[Any, Any]) -> None:
    """Replace ``int``, ``math`` and the keys of ``functions`` in the modules whose code handles sizes."""
    changed = symbolic_math()
    replaced = {
        "math": (math, changed),
        **{name: (getattr(math, name), getattr(changed, name)) for name in ("sqrt", "ceil", "floor")},
    }
    for name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType) or not (name in own or name.startswith(LIBRARIES)):
            continue
        names = vars(module)
        if "is_tracing" in names:
            names["is_tracing"] = lambda *_, **__: True
        if "torch_compilable_check" in names:
            names["torch_compilable_check"] = lambda *_, **__: None
        for word, (before, after) in replaced.items():
            if names.get(word) is before:
                names[word] = after
        for word, value in list(names.items()):
            if isinstance(value, types.FunctionType | types.BuiltinFunctionType) and value in functions:
                names[word] = functions[value]
        if "int" not in names and not NOT_SHADOWED.search(name):
            names["int"] = Integers
