"""Where the FLOPs of a model go: its modules, the roles of their work, and the closed form, of an interpreted estimator.

Everything is read from the program that the estimator interprets, so explaining imports no more than estimating.
"""

from __future__ import annotations

from functools import cached_property

from symflops.emit.python.rows import RowPrinter
from symflops.evaluate.module_tree import html_table, largest, rows_of, tree_of
from symflops.evaluate.typical import as_batch, rests_of, typical_lengths
from symflops.evaluate.units import NAMES
from symflops.ir.format import line_of
from symflops.ir.index_sets import ONCE, PADDED, padded_name
from symflops.library.lookup import result
from symflops.library.naming import estimator_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from symflops.evaluate.assumed import Known
    from symflops.evaluate.interpreted import InterpretedEstimator

PASSES = ("forward", "backward", "recomputed")


def default_batch(model: InterpretedEstimator) -> dict[str, Any]:
    """One item per stream, of typical lengths that the model can run."""
    streams = model.stored.streams
    lengths = typical_lengths(streams, rests_of(model.stored, model.sizes), model.taken)
    return as_batch(streams, lengths) | {stream.name: 1 for stream in streams if stream.counts}


class Explanation:
    """Where the FLOPs of a step of a model go.

    Attributes:
        rows: A row per module, outer ones before those in them, as plain data: pandas and polars take the list as it is.
        batch: The batch that was given, or one item of typical lengths per stream.
        known: What is known of the sizes, and folded into the closed form; None for the form of all models.
    """

    def __init__(self, model: InterpretedEstimator, batch: Mapping[str, Any] | None = None, known: Known | None = None) -> None:
        self.model, self.known = model, known
        self.batch: dict[str, Any] = dict(batch) if batch else default_batch(model)
        self._document, self._printer = model.stored.document, RowPrinter(model.stored.formulas.nodes)

    @cached_property
    def estimate(self) -> dict[str, Any]:
        """The figures of the whole model, as :func:`symflops.estimate` returns them."""
        return result(self.model, self.batch)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A row per module: its path and ``depth``, ``parameters``, the FLOPs of each pass, ``total`` and ``share``."""
        root = tree_of(self.model, self.model.moments(**self.batch))
        return list(rows_of(root, root.total))

    def top(self, most: int) -> list[dict[str, Any]]:
        """A row for the whole, and one for each of the ``most`` modules that do most work themselves, the first one first."""
        root = largest(self.model, self.model.moments(**self.batch), most)
        return list(rows_of(root, root.total))

    @property
    def title(self) -> str:
        """The title of the spec."""
        return self._document["title"] or self.model.name

    @property
    def roles(self) -> list[dict[str, Any]]:
        """The modules that conventions may count apart, by role and by region; what the spec leaves open is inferred."""
        document, found = self._document, dict[tuple[str, bool], dict[str, None]]()
        for position in self.model.stored.lines(self.model.regime, self.model.convention):
            module, shared, *_ = line_of(document, document["all_lines"][position])
            work = document["work"][shared]
            role = work.get("role", "")
            own = () if role in (work["operator"], "product") else (role,)
            for name in (*own, *work.get("regions", ())):
                found.setdefault((name, name in work.get("inferred", ())), {})[module] = None
        return [{"role": role, "inferred": inferred, "modules": list(names)} for (role, inferred), names in found.items()]

    @property
    def closed_form(self) -> dict[str, dict[str, str]]:
        """The closed form of each pass as moment -> coefficient."""
        if self._folded is not None:
            return self._folded[0]
        case = next(
            row
            for row in self._document["cases"]
            if (row["regime"], row["convention"]) == (self.model.regime, self.model.convention)
        )
        return {name: {self._moment(place): self._printer.text(form) for place, form in case[name]} for name in PASSES}

    @cached_property
    def _folded(self) -> tuple[dict[str, dict[str, str]], list[dict[str, str]], list[str]] | None:
        """The closed forms, their letters and the values of other sizes, with what is known put in; None if nothing is."""
        if not self.known:
            return None
        from symflops.library.assumed_sizes import forms_of, symbols_of

        program = self.known.of(self.model.program.counting([self.model.convention]))
        case = program.case(self.model.regime, self.model.convention)
        return forms_of(program, case), *symbols_of(program, case)

    def _moment(self, position: int) -> str:
        """The name of a moment as the convention counts it: of padded lengths or of real ones."""
        row = self.model.stored.moments[position]
        padded = self.model.stored.of_convention("lengths", self.model.convention) == PADDED and not row.get("side")
        lengths = self.model.stored.formulas.letters(row["formula"])
        return padded_name(row["name"]) if padded and lengths else str(row["name"])

    @property
    def symbols(self) -> list[dict[str, str]]:
        """The letters of the closed form: sizes with their config field and meaning, derived ones with their formula."""
        if self._folded is not None:
            return self._folded[1]
        sizes = [{"letter": row["letter"], "field": row["attribute"], "doc": row["doc"]} for row in self._document["fields"]]
        derived = [(row["letter"], self._printer.text(row["formula"])) for row in self._document["definitions"]]
        return sizes + [{"letter": letter.partition("@")[0], "formula": formula} for letter, formula in derived]

    @property
    def folded(self) -> list[str]:
        """The sizes that are known, and that the closed forms no longer have, each with its value."""
        return [] if self._folded is None else self._folded[2]

    @property
    def sums(self) -> dict[str, str]:
        """The moments of the closed form, each with what it sums over."""
        return {name: row["items"] for name, row in self._named if row["items"] != ONCE}

    @property
    def of_batch(self) -> dict[str, str]:
        """The amounts of the closed form that a batch has once, each as a formula."""
        return {name: self._printer.text(row["formula"]) for name, row in self._named if row["items"] == ONCE}

    @property
    def _named(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The moments of the closed form."""
        named = {name for form in self.closed_form.values() for name in form}
        places = self.model.stored.places(self.model.convention)
        rows = [(self._moment(place), self.model.stored.moments[place]) for place in places]
        return [(name, row) for name, row in rows if name in named]

    def as_dict(self) -> dict[str, Any]:
        """The JSON object that ``symflops explain --json`` prints."""
        found = {"title": self.title, "batch": self.batch, "modules": self.rows, "roles": self.roles}
        return {**self.estimate, **found, "closed_form": self.closed_form, "symbols": self.symbols, "folded": self.folded}

    def __repr__(self) -> str:
        found = self.estimate
        told = f"{found['regime']:.60}, {found['convention']}, {found['total']:,} {NAMES[found['unit']]}"
        return f"<Explanation of '{found['spec']}': {told}, {len(self.rows)} modules>"

    def _repr_html_(self) -> str:
        """The modules that do work as notebooks show them, with exact numbers."""
        found, unit = self.estimate, NAMES[self.estimate["unit"]]
        rows = [row for row in self.rows if row["total"] or not row["depth"]]
        cells = [
            (
                "  " * row["depth"] + row["name"],
                *(f"{row[key]:,}" for key in ("parameters", "forward", "backward")),
                f"{row['share']:.2%}",
            )
            for row in rows
        ]
        caption = f"{self.title}; regime {found['regime']}, convention {found['convention']}, batch {self.batch}"
        return html_table(caption, ("module", "parameters", f"forward {unit}", f"backward {unit}", "share"), cells)


def explain(
    model: Any,
    batch: Mapping[str, Any] | None = None,
    *,
    regime: str | None = None,
    convention: str | None = None,
    config: Any = None,
) -> Explanation:
    """Where the FLOPs of a step of a model go, module by module.

    Args:
        model: The name of a spec, a class, a variant or a published model; a path of a spec, a config or a folder with one;
            a config; an estimator; or what :func:`symflops.load` returns.
        batch: Per stream one entry per item; by default one item of typical lengths.
        regime: What trains; by default ``full``, or what it is for an estimator.
        convention: What counts; by default ``symflops``, or what it is for an estimator.
        config: The config of a model that is named.

    Raises:
        SymflopsError: as :func:`symflops.estimate`.
    """
    return Explanation(estimator_of(model, config, regime, convention), batch)
