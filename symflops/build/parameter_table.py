"""The parameters of the graph under construction, by path."""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr

from symflops.build.journal import Journaled
from symflops.build.scopes import Frame
from symflops.formula.polynomial import Definitions
from symflops.formula.truth import NO
from symflops.formula.words import said
from symflops.ir.nodes import Parameter
from symflops.ir.patterns import Path
from symflops.ir.spec import Repeat
from symflops.ops.kind import Call
from symflops.support.findings import Label

Claims = tuple[tuple[Parameter, bool], ...]
"""(parameter, whether the spec gives its path) for each shape of the parameters at one path."""


class ParameterTable:
    """The parameters of the graph under construction, checked when an operator claims them.

    A path has one shape under one condition, and two operators use it only if the spec says that they share it.

    Attributes:
        claims: Path -> the parameters claimed so far, with different shapes.
        sharing: The number of entries around the current one that reuse parameters (``shared: true``).
        turns: The repeats around the current entry, each with the index of its iteration.
    """

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.claims: Journaled[Path, Claims] = Journaled()
        self.sharing = 0
        self.turns: list[tuple[Repeat, Expr]] = []

    def claim(self, call: Call, frame: Frame, tied: bool, shared: bool) -> None:
        """Add the parameters that an operator declares to the table; ``call`` then has those of the table.

        ``tied``: whether the spec gives their paths. ``shared``: whether the operator reuses parameters.
        """
        for position, parameter in enumerate(call.parameters):
            lists = tuple(entry for entry in frame.lists if entry[0] in parameter.path.indices)
            exists = parameter.exists & frame.guard
            if frame.copies or lists or exists is not parameter.exists:
                leading = frame.copies if parameter.stacked else ()
                parameter = replace(parameter, shape=(*leading, *parameter.shape), exists=exists, lists=lists)
            call.parameters[position] = parameter
            known = self.claims.get(parameter.path, ())
            same = next((item for item in known if self._alike(item[0].shape, parameter.shape)), None)
            if same is None:
                self._check_shapes(parameter, known, call)
                if not (shared or self.sharing or tied):
                    self._check_turns(parameter, call)
                self.claims[parameter.path] = (*known, (parameter, tied))
                continue
            call.parameters[position] = replace(parameter, shape=same[0].shape)
            repeated = shared or self.sharing or tied or same[1]
            if not repeated and same[0].exists & parameter.exists is not NO:
                hint = self._without_path() or "if the model calls this module twice, write 'shared: true'"
                message = f"parameter '{parameter.path}' is claimed twice"
                call.fail("parameter-twice", message, "", hint, also=_claimed_at(same[0]))

    def _check_turns(self, parameter: Parameter, call: Call) -> None:
        """Refuse a parameter shared by all iterations of a repeat because its path lacks the index."""
        for entry, index in self.turns:
            used = parameter.path.indices
            if entry.count is not None and index.free_symbols and index.free_symbols.isdisjoint(used):
                hint = self._without_path() or "if all iterations use one module, write 'shared: true'"
                call.fail("parameter-twice", f"all iterations of a repeat have one parameter '{parameter.path}'", "", hint)

    def _without_path(self) -> str:
        """The hint to write an index in paths, if the surrounding repeat has no path; else empty.

        Repeats whose iterations share their parameters are skipped.
        """
        entry = next((entry for entry, _ in reversed(self.turns) if not entry.shared), None)
        if entry is None or entry.path.text != "_":
            return ""
        index = entry.index.text if entry.index else "j"
        named = "" if entry.index else f" and 'index: {index}'"
        told = f"the repeat has no path: begin the paths in it with its index, as '{{{index}}}.name'{named}"
        return f"{told}; if all iterations use one module, write 'shared: true' at the repeat"

    def _alike(self, one: tuple[Expr, ...], other: tuple[Expr, ...]) -> bool:
        """Whether two shapes are equal for all sizes."""
        return len(one) == len(other) and all(self.definitions.equal(a, b) for a, b in zip(one, other, strict=True))

    def _check_shapes(self, parameter: Parameter, known: Claims, call: Call) -> None:
        """Refuse ``parameter`` if its path has another shape in ``known`` and both can exist at once."""
        for other, _ in known:
            if other.exists & parameter.exists is not NO:
                message = f"parameter '{parameter.path}' has two shapes, {_shape(other)} and {_shape(parameter)}"
                hint = "a parameter has one shape: is one of the two paths, or widths, another?"
                call.fail("parameter-shape", message, "", hint, also=_claimed_at(other))


def _claimed_at(parameter: Parameter) -> tuple[Label, ...]:
    """Where ``parameter`` was first claimed, as a further label of a finding; empty if unknown."""
    return (Label(parameter.span, f"first claimed here, with shape {_shape(parameter)}"),) if parameter.span else ()


def _shape(parameter: Parameter) -> str:
    return f"[{', '.join(map(said, parameter.shape))}]"
