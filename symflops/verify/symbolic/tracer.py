"""One trace: a class is built and run with symbols in its config and in its inputs, and counted."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import sympy

from symflops.ir.regime import Regime
from symflops.verify.applied import in_regime
from symflops.verify.running import needed
from symflops.verify.symbolic.inputs import RANK, Given, Inputs
from symflops.verify.symbolic.masks import masks_read
from symflops.verify.symbolic.passes import Counts, count
from symflops.verify.symbolic.target import LiveTarget, Place, Target, dotted, others, parts, places, put, validate
from symflops.verify.symbolic.traced import BitAnd, BitOr, BitXor, symbol

MODULE_CODE, OTHER_CODE = (
    re.compile(r"torch/nn/modules/(?!module\.py)"),
    re.compile(r"/torch/|/symflops/|/sympy/|contextlib|^<"),
)
FULL = Regime("full")
STEPS = 8
"""Most replacements of symbols by others in a chain of equations."""
DENOMINATORS = 10**6
"""Largest denominator of a fraction that a float stands for."""


@dataclass
class Example:
    """Example that every run of a class shares.

    Attributes:
        target: The class and its config.
        depths: Numbers of layers, by place; they are given to the config's constructor.
        fields: Example values of the other integer fields.
        lengths: Example value of each length.
        candidate: Which of the candidates of inputs runs.
        device: Where real runs are: ``meta``, or ``cpu`` with tensors that hold no values, for code that names the CPU.
        given: Inputs of the user; None for those that the class is known to take.
        own: The values of ``fields`` in the config as it was given.
        steps: By place, the step by which the figures grow linearly in a number of layers.
        least: By place, the least number of layers from which on they do.
        most: By place, the number of layers beyond which they were seen to do so no more.
        regime: What trains, is adapted and recomputed; the rank of its adapters is a length.
    """

    target: Target | LiveTarget
    depths: dict[Place, int]
    fields: dict[Place, int]
    lengths: dict[str, int]
    candidate: int
    device: str = "meta"
    given: Given | None = None
    own: dict[Place, int] = field(default_factory=dict)
    steps: dict[Place, int] = field(default_factory=dict)
    least: dict[Place, int] = field(default_factory=dict)
    most: dict[Place, int] = field(default_factory=dict)
    regime: Regime = FULL

    @property
    def name(self) -> str:
        """The name of the class."""
        return str(self.target.kind.__name__)

    @property
    def module(self) -> str:
        """The Python module that defines the class."""
        return str(self.target.kind.__module__)

    def fixed(self) -> dict[str, Any]:
        """Values of the config's fields that are no integers from 2 on, by name."""
        settings = self.target.settings(self.depths)
        small = {dotted(place): value for place, value in places(settings) if value < 2}
        return dict(others(settings)) | small

    def call(self, values: Mapping[Place, Any], lengths: Mapping[str, Any], device: str) -> Counts:
        """Build the class with ``values`` in its config and run both passes on inputs of these lengths."""
        settings = self.target.settings(self.depths)
        for place, value in values.items():
            put(settings, place, value)
        for part in parts(settings):
            validate(part)
        model = self.target.build(settings)
        found = self.given.candidates(lengths, device) if self.given else Inputs(model, settings, lengths, device).candidates()
        made = next(itertools.islice(found, self.candidate, None))()
        with in_regime(model, self.regime, lengths.get(RANK)):
            if self.given:
                return count(model, made["kwargs"], made["args"], self.given.outputs)
            return count(model, made)

    def real(self, values: Mapping[Place, int], lengths: Mapping[str, int]) -> Counts:
        """Counts of the class without values of tensors."""
        torch, fake = needed("torch"), needed("torch._subclasses.fake_tensor")
        if self.device == "meta":
            with torch.device("meta"):
                return self.call(values, lengths, "meta")
        with fake.FakeTensorMode(allow_non_fake_inputs=True):
            return self.call(values, lengths, "cpu")


@dataclass
class Trace:
    """Closed forms of one trace, over symbols named like the fields and lengths.

    Attributes:
        counts: Expressions of all figures.
        derived: Symbol -> expression, of the fields that the class ties to others; a number where it fixes one.
        guards: (condition, source line) under which the class ran as it did.
        places: Symbol name -> place of its field.
        lines: Symbol name -> source line that ties it to others, or fixes it.
        masks: Conditions on positions of a query ``q`` and a key ``k`` under which they attend, of masks that could be read.
    """

    counts: Counts
    derived: dict[sympy.Symbol, sympy.Expr]
    guards: list[tuple[sympy.Basic, str]]
    places: dict[str, Place] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    masks: list[sympy.Basic] = field(default_factory=list)


class Tracing:
    """A trace under way: its symbols, so that an error can be blamed on fields."""

    def __init__(self, example: Example, fields: Sequence[Place]) -> None:
        shapes, fake = needed("torch.fx.experimental.symbolic_shapes"), needed("torch._subclasses.fake_tensor")
        self.example, self.shapes = example, shapes
        self.env = shapes.ShapeEnv(duck_shape=False, specialize_zero_one=True)
        self.mode = fake.FakeTensorMode(shape_env=self.env, allow_non_fake_inputs=True)
        self.mode.cache_enabled = False
        self.env.guards = self.guards = Guards()
        self.lines: dict[Any, str] = {}
        replace = self.env._set_replacement

        def set_replacement(one: Any, *rest: Any, **options: Any) -> None:
            self.lines.setdefault(one, code_line())
            replace(one, *rest, **options)

        self.env._set_replacement = set_replacement
        self.names: dict[sympy.Symbol, sympy.Symbol] = {}
        self.places: dict[sympy.Symbol, Place] = {}
        self.lengths = {name: self.integer(name, value) for name, value in example.lengths.items()}
        self.values = {}
        for place in fields:
            self.values[place] = self.integer(dotted(place), example.fields[place])
            self.places[self.values[place].node.expr] = place

    def integer(self, name: str, hint: int) -> Any:
        """A symbolic integer with the value ``hint`` in this run."""
        torch = needed("torch")
        context = self.shapes.StatelessSymbolicContext(dynamic_sizes=[self.shapes.DimDynamic.DYNAMIC])
        found = self.mode.from_tensor(torch.empty(1).expand(hint), symbolic_context=context).shape[0]
        self.names[found.node.expr] = symbol(name)
        return found

    def run(self) -> Trace:
        """Build and run the class; whatever its code raises is raised."""
        masks: list[Any] = []
        with self.mode, masks_read(masks):
            counts = self.example.call(self.values, self.lengths, "cpu")
        derived = {self.names[one]: self.final(one) for one in self.names if one in self.env.replacements}
        self.prefer_fields(derived)
        derived = {one: expression.xreplace(derived) for one, expression in derived.items()}
        with self.mode:
            plain = Counts(
                self.read(counts.parameters), self.read(counts.forward), self.read(counts.backward),
                {path: self.read(flops) for path, flops in counts.modules.items()},
                counts.missed,
                {path: tuple(self.read(one) for one in shape) for path, shape in counts.shapes.items()},
            )  # fmt: skip
        guards = [(self.final(guard.expr), line) for guard, line in zip(self.guards, self.guards.lines, strict=True)]
        places = {dotted(place): place for place in self.places.values()}
        lines = {self.names[one].name: line for one, line in self.lines.items()}
        read = dict.fromkeys(self.final(one) for one in masks if one is not None)
        return Trace(plain, derived, guards, places, lines, [one for one in read if one not in (True, False)])

    def prefer_fields(self, derived: dict[sympy.Symbol, Any]) -> None:
        """Where the class ties a field to a length, the length follows from the field."""
        lengths = {symbol(name) for name in self.lengths}
        for one, expression in list(derived.items()):
            if one not in lengths and expression in lengths:
                derived[expression] = one
                del derived[one]
                own = {new: old for old, new in self.names.items()}
                self.env.replacements.pop(own[one])
                self.env.replacements[own[expression]] = own[one]

    def read(self, value: Any) -> sympy.Expr:
        """The expression of an integer, in the names of fields and lengths."""
        return self.final(value.node.expr) if hasattr(value, "node") else sympy.Integer(int(value))

    def final(self, found: Any) -> Any:
        """An expression with what equations tie replaced, in the names of fields and lengths."""
        for _ in range(STEPS):
            after = found.xreplace(self.env.replacements)
            if after == found:
                break
            found = after
        return standard(found.xreplace(self.names))


def standard(found: sympy.Basic) -> Any:
    """An expression in sympy's own functions, in place of PyTorch's."""
    rules = {
        "FloorDiv": lambda a, b: sympy.floor(sympy.expand(a / b)),
        "CleanDiv": lambda a, b: a / b,
        "CeilDiv": lambda a, b: sympy.ceiling(sympy.expand(a / b)),
        "CeilToInt": sympy.ceiling,
        "FloorToInt": sympy.floor,
        "TruncToInt": sympy.floor,
        "RoundToInt": lambda a: sympy.floor(a / 2 + sympy.Rational(1, 4)) + sympy.ceiling(a / 2 - sympy.Rational(1, 4)),
        "Mod": sympy.Mod,
        "PythonMod": sympy.Mod,
        "ModularIndexing": lambda a, b, c: sympy.Mod(sympy.floor(a / b), c),
        "IntTrueDiv": lambda a, b: a / b,
        "FloatTrueDiv": lambda a, b: a / b,
        "PowByNatural": lambda a, b: a**b,
        "FloatPow": lambda a, b: a**b,
        "ToFloat": lambda a: a,
        "Identity": lambda a: a,
        "Max": sympy.Max,
        "Min": sympy.Min,
        "Where": lambda c, a, b: sympy.Piecewise((a, c), (b, True)),
        "OpaqueUnaryFn_sqrt": sympy.sqrt,
        "OpaqueUnaryFn_log2": lambda a: sympy.log(a, 2),
        "BitwiseFn_bitwise_and": BitAnd,
        "BitwiseFn_bitwise_or": BitOr,
        "BitwiseFn_bitwise_xor": BitXor,
        "LShift": lambda a, b: a * 2**b,
        "RShift": lambda a, b: sympy.floor(a / 2**b),
    }
    if not found.args:
        return simplest(float(found)) if found.is_Float else found
    args = [standard(one) for one in found.args]
    rule = rules.get(type(found).__name__)
    return rule(*args) if rule else found.func(*args)


def simplest(value: float) -> sympy.Rational:
    """The fraction that a float stands for: 7/10 for 0.7, as products of it are rounded to those of the fraction."""
    near = Fraction(value).limit_denominator(DENOMINATORS)
    return sympy.Rational(near if float(near) == value else Fraction(value))


class Guards(list[Any]):
    """The guards of a trace, and the source line that asked for each."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def append(self, guard: Any) -> None:
        """Add a guard, with the line that asks for it."""
        super().append(guard)
        self.lines.append(code_line())


def code_line() -> str:
    """File and line of the innermost frame that runs the code of a module, neither PyTorch's own nor ours; else empty."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith("symbolic/passes.py") and frame.f_code.co_name == "count":
            return ""  # of the backward pass
        if MODULE_CODE.search(file) or not OTHER_CODE.search(file):
            return f"{below_packages(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def below_packages(file: str) -> str:
    """The path of a source file below the folder of packages, or its name."""
    before, packages, path = file.rpartition("site-packages/")
    return path if packages else before.rpartition("/")[2] or path.rpartition("/")[2]


def blamed(error: BaseException, tracing: Tracing) -> tuple[set[Place], str]:
    """Return (fields whose symbols the failing line uses, or its frame holds; source line) of an error in module code."""
    frames = []
    step = error.__traceback__
    while step:
        frames.append((step.tb_frame, step.tb_lineno))
        step = step.tb_next
    for frame, line in reversed(frames):
        file = frame.f_code.co_filename
        if "/symflops/" in file:
            continue
        own = frame.f_locals.get("self")
        attributes = vars(own) if isinstance(own, needed("torch").nn.Module) else {}
        words = set(re.findall(r"\w+", line_of(file, line)))
        local = [(name, value) for name, value in (*frame.f_locals.items(), *attributes.items()) if name != "self"]
        for chosen in ([value for name, value in local if name in words], [value for _, value in local]):
            found = {tracing.places[one] for value in chosen for one in symbols_in(value) if one in tracing.places}
            if found:
                return found, f"{below_packages(file)}:{line}"
    return set(), ""


def line_of(file: str, line: int) -> str:
    """A line of a source file."""
    import linecache

    return linecache.getline(file, line)


def symbols_in(value: Any) -> set[Any]:
    """Symbols in an integer, a short list of integers or an expression."""
    values = value if isinstance(value, (list, tuple)) and len(value) < 10 else [value]
    return {
        one
        for value in values
        if hasattr(value, "node") and hasattr(value.node, "expr")
        for one in value.node.expr.free_symbols
    }
