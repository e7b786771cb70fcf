"""Reads a stored program (plain JSON data), and evaluates its lines for one model.

:mod:`symflops.ir.serialise` writes the format. Reading needs neither the dataclasses of derivation nor any package outside the
standard library, because quick commands and training jobs do it.
"""

from __future__ import annotations

from collections import deque

from symflops.formula.table import Formulas
from symflops.ir.format import FormatError, leading, line_of, unpacked
from symflops.support.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from symflops.ir.program import Program


class UnknownNameError(SymflopsError, ValueError):
    """A regime or convention is not in the program."""


class OtherStructure(SymflopsError, ValueError):  # noqa: N818 - a published name
    """The given sizes are those of a model whose structure is not the program's."""


class DamageTold:
    """Context manager that converts errors from reading a damaged stored program to a FormatError.

    Raises:
        FormatError: reading it raised ``AttributeError``, ``LookupError``, ``StopIteration``, ``TypeError`` or ``ValueError``.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (AttributeError, LookupError, StopIteration, TypeError)) or type(error) is ValueError:
            raise FormatError(f"a stored program is damaged: {type(error).__name__}: {error}") from None


class Stream:
    """A stream that a stored program declares.

    Attributes:
        name: the name of the stream.
        items: the index set.
        variables: the axes of a batch entry; empty if entries have no lengths.
        optional: whether a batch may omit the stream.
        counts: whether a batch gives only the number of items.
        absent: the length of each axis if a batch omits the stream.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.name: str = row["name"]
        self.items: str = row["items"]
        self.variables: tuple[str, ...] = tuple(row["variables"])
        self.optional: bool = row.get("optional", False)
        self.counts: bool = row.get("counts", False)
        self.absent: int = row.get("absent", 0)

    @property
    def given(self) -> bool:
        """Whether a batch may have an entry for the stream."""
        return bool(self.variables) or self.counts


class Layout:
    """Layout of a real tensor; see :class:`symflops.ir.spec.Layout`."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.axes: tuple[str, ...] = tuple(row.get("axes", ()))
        self.values: tuple[str, ...] = tuple(row.get("values", ()))


class Input:
    """An argument of the model, from whose shape lengths can be read.

    Attributes:
        name: the name of the argument.
        stream: the stream whose lengths the argument has.
        layout: the axes of the argument; None if no lengths can be read from it.
        over: the index set of the items in the argument; empty for that of ``stream``.
        width: the position of the formula for its number of channels; None if there is none.
        when: the position of the formula that is not 0 if the config implies the argument; None if there is none.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.name: str = row["name"]
        self.stream: str = row["stream"]
        self.layout = None if row["layout"] is None else Layout(row["layout"])
        self.over: str = row.get("over", "")
        self.width: int | None = row.get("width")
        self.when: int | None = row.get("when")


RECENT: deque[tuple[Any, Stored]] = deque(maxlen=8)
"""Cache of recently converted programs: most are used under several regimes and conventions."""


def stored_of(program: Program | Mapping[str, Any]) -> Stored:
    """Convert a program, in memory or as the JSON object of a stored one, to a :class:`Stored`.

    Raises:
        FormatError: the object has another format or is damaged.
    """
    if isinstance(program, dict):
        return Stored(program)
    for known, stored in RECENT:
        if known is program:
            return stored
    from symflops.ir.serialise import document_of

    made = Stored(document_of(program))  # type: ignore[arg-type]
    RECENT.append((program, made))
    return made


class Stored:
    """A stored program, read from its JSON object.

    Raises:
        FormatError: the document has another format or is damaged.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        with DamageTold():
            self.document = document = unpacked(document)
            self.name: str = document["name"]
            self.formulas = Formulas(document["formulas"])
            self.streams = tuple(Stream(row) for row in document["streams"])
            self.inputs = tuple(Input(row) for row in document["inputs"])
            self.regimes = {row["name"]: row for row in document["regimes"]}
            self.conventions: tuple[str, ...] = tuple(document["conventions"])
            self.moments: list[Mapping[str, Any]] = document["moments"]
            self.statistics: list[Mapping[str, Any]] = document.get("statistics", [])
            self.inner: list[Mapping[str, Any]] = document.get("inner", [])
            self.conditions: list[Mapping[str, Any]] = document.get("conditions", [])

    @property
    def program(self) -> Program:
        """The program as the dataclasses of :mod:`symflops.ir.program`."""
        from symflops.ir.serialise import program_of

        return program_of(self.document)

    def tensors(self, regime: str) -> list[tuple[str, int]]:
        """List the parameters of a regime: name, and position of the formula for its number of elements.

        A parameter inside a repeat is listed once, with the elements of all its copies.
        """
        rows = [self.document["all_tensors"][position] for position in self.regimes[regime]["tensors"]]
        return [(row[0], self.document["shapes"][row[1]]["count"]) for row in rows]

    def of_convention(self, table: str, convention: str) -> Any:
        """The rule of a convention in ``table``: ``pairs``, ``lengths``, ``unseen`` or ``units``."""
        return dict(self.document[table])[convention]

    def check(self, regime: str, convention: str) -> None:
        """Refuse a regime or a convention that is not stored.

        Raises:
            SymflopsError: the name is not stored; the message lists the names that are.
        """
        for kind, name, known in (("regime", regime, self.regimes), ("convention", convention, self.conventions)):
            if name not in known:
                raise UnknownNameError(f"no {kind} '{name}'; there is {', '.join(known)}")

    def lines(self, regime: str, convention: str) -> list[int]:
        """The positions of the contractions of a regime that a convention may count, in the program's table."""
        row = self.regimes[regime]
        found: list[int] = dict(row.get("own", ())).get(convention, row["lines"])
        return found

    def shares(self, convention: str) -> int:
        """The number of units in one FLOP, for a convention that counts in fractions of a FLOP; otherwise 1."""
        return dict(self.document.get("shares", ())).get(convention, 1)  # type: ignore[no-any-return]

    def places(self, convention: str) -> list[int]:
        """The positions, in the program's list, of the moments that a convention uses."""
        only = [row.get("only", ()) for row in self.moments]
        return [place for place, names in enumerate(only) if not names or convention in names]

    @property
    def fixed(self) -> list[tuple[str, Any]]:
        """The sizes that determine the structure, as (letter, value)."""
        return [(letter, config_value(value)) for letter, value in self.document.get("fixed", ())]

    @property
    def variant(self) -> str | None:
        """The name of the structure (``derived`` if it has none); None if no size determines the structure."""
        return (self.document.get("variant") or "derived") if self.document.get("fixed") else None

    @property
    def whole(self) -> tuple[str, ...]:
        """The names of moments that depend on a whole batch, and so do not add across batches."""
        names = {statistic["name"] for statistic in self.statistics}
        return tuple(row["name"] for row in self.moments if not names.isdisjoint(self.formulas.letters(row["formula"])))

    def __repr__(self) -> str:
        return f"<Stored program of '{self.name}': regimes={len(self.regimes)}, conventions={len(self.conventions)}>"


def has(sizes: Mapping[str, Any], structure: Mapping[str, str]) -> bool:
    """Whether sizes are those of a structure, which maps attributes to the ``repr`` of their values."""
    return all(repr(config_value(sizes.get(name))) == value for name, value in structure.items())


def config_value(value: Any) -> Any:
    """Convert a stored config value: lists to tuples, tagged fractions to Fractions."""
    if isinstance(value, dict):
        from fractions import Fraction

        return Fraction(value["fraction"])
    return tuple(config_value(item) for item in value) if isinstance(value, (list, tuple)) else value


def share(whole: Any, parts: int) -> Any:
    """Divide a number exactly; the result is a Fraction if it is not whole."""
    found, rest = divmod(whole, parts)
    if not rest:
        return found
    from fractions import Fraction  # an estimate with whole FLOPs starts faster without it

    return Fraction(whole, parts)


class Line:
    """One contraction of a stored program, with the formulas of sizes evaluated for one model.

    Args:
        document: the JSON object of the program.
        position: the position of the contraction in the program's table.
        value: evaluates the formula at a position.
        places: position of a moment in the program -> its index among the moments of a batch.
        kind: which pairs the convention counts: ``useful`` or ``executed``.
        unseen: whether the convention counts work that PyTorch's counter does not see.
        shares: the number of units in one FLOP.

    ``vector`` has pairs of the index of a moment and its coefficient. Their sum of products is the extent of the contraction;
    ``vector`` is empty if the convention does not count the contraction.
    """

    __slots__ = ("_within", "backward", "contraction", "forward", "module", "recomputed", "unit", "vector")

    def __init__(
        self, document: Mapping[str, Any], position: int, value: Callable[[int], Any], places: Mapping[int, int],
        kind: str, unseen: bool, shares: int = 1,
    ) -> None:  # fmt: skip
        self.module, shared, *rest = line_of(document, document["all_lines"][position])
        work = document["work"][shared]
        self._within: Sequence[str] = rest[0]["within"] if rest else ()
        self.contraction: str = work["contraction"]
        self.unit = value(work["unit"]) if shares == 1 else share(value(work["unit"]), shares)
        self.forward = value(work["forward"])
        self.backward = sum(value(document["all_gradients"][gradient]["count"]) for gradient in work["gradients"])
        self.recomputed = value(work["recomputed"]) if "recomputed" in work else 0
        counts = work.get("seen", True) or unseen
        pairs = document["all_amounts"][work["amount"]]["useful" if kind == "useful" else "executed"]
        self.vector = [(places[moment], value(formula)) for moment, formula in pairs] if counts else []

    @property
    def within(self) -> tuple[str, ...]:
        """The modules on the call stack, outermost first."""
        return tuple(self._within) or leading(self.module)

    def once(self, values: Sequence[int]) -> Any:
        """FLOPs of the contraction on a batch if it is computed once, given the moments of the batch."""
        return self.unit * sum(part * values[position] for position, part in self.vector)
