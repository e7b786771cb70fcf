"""Breaks a model's FLOPs down by module and role, and writes out the closed form.

All data comes from the program that the estimator interprets, so explaining imports no more than estimating.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

from symflops.emit.python.rows import RowPrinter
from symflops.evaluate.batch import merged
from symflops.evaluate.module_tree import html_table, largest, rows_of, tree_of
from symflops.evaluate.typical import as_batch, rests_of, typical_lengths
from symflops.evaluate.units import NAMES, scaled
from symflops.ir.format import line_of
from symflops.ir.index_sets import ONCE, PADDED, padded_name
from symflops.library.lookup import result
from symflops.library.naming import batch_for, estimator_of, given_head, lacks_head
from symflops.library.pipelines import lengths_of, rule_for
from symflops.support.errors import LONGEST, SymflopsError, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from symflops.evaluate.assumed import Known
    from symflops.evaluate.interpreted import InterpretedEstimator

PASSES = ("forward", "backward", "recomputed")


def default_batch(model: InterpretedEstimator) -> dict[str, Any]:
    """Return a batch of one item per stream, with typical lengths that the model accepts.

    If a pipeline has a rule for the model, the lengths are those of its usual image or video.
    """
    rule = rule_for(model)
    if rule:
        with suppress(SymflopsError):
            batch = {stream: [lengths] for stream, lengths in lengths_of(rule, {}).items()}
            model.moments(**batch)
            return batch
    streams = model.stored.streams
    lengths = typical_lengths(streams, rests_of(model.stored, model.sizes), model.taken)
    return as_batch(streams, lengths) | {stream.name: 1 for stream in streams if stream.counts}


class Explanation:
    """Breakdown of one training step's FLOPs by module, with the closed form.

    Attributes:
        rows: One dict per module, parents before children, ready for pandas or polars.
        batch: The given batch, or one item of typical lengths per stream.
        known: Sizes that the closed form has as numbers; with None, every size is a letter.
    """

    def __init__(self, model: InterpretedEstimator, batch: Mapping[str, Any] | None = None, known: Known | None = None) -> None:
        self.model, self.known = model, known
        self.batch: dict[str, Any] = dict(merged([batch], {})) if batch else default_batch(model)
        self._document, self._printer = model.stored.document, RowPrinter(model.stored.formulas.nodes)

    @cached_property
    def estimate(self) -> dict[str, Any]:
        """The figures of the whole model, as :func:`symflops.estimate` returns them."""
        return result(self.model, self.batch)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A dict per module: name, ``depth``, ``parameters``, FLOPs of each pass, ``total`` and ``share``."""
        root = tree_of(self.model, self.model.moments(**self.batch))
        return list(rows_of(root, root.total))

    def top(self, most: int) -> list[dict[str, Any]]:
        """Return a row for the model, then for the ``most`` modules with the most work outside their children."""
        root = largest(self.model, self.model.moments(**self.batch), most)
        return list(rows_of(root, root.total))

    @property
    def title(self) -> str:
        """The title of the spec."""
        return self._document["title"] or self.model.name

    @property
    def heading(self) -> str:
        """The name by which the model was asked for, and the title of the spec."""
        return f"{self.model.asked}: {self.title}" if self.model.asked else self.title

    @property
    def roles(self) -> list[dict[str, Any]]:
        """A dict per role or region, by which a convention can count differently, with its ``modules``.

        ``role`` is the name of the role or region; ``inferred`` is True if the spec does not name it.
        """
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
        """The closed forms as text: pass -> moment -> coefficient."""
        if self._folded is not None:
            return self._folded[0]
        case = next(
            row
            for row in self._document["cases"]
            if (row["regime"], row["convention"]) == (self.model.regime, self.model.convention)
        )
        return {name: {self._moment(place): self._printer.text(form) for place, form in case[name]} for name in PASSES}

    @property
    def cache(self) -> dict[str, dict[str, Any]]:
        """Elements that the batch keeps for further tokens, by kind: ``elements``, and its ``form``, moment -> coefficient."""
        elements = self.model.cache(self.model.moments(**self.batch))
        forms = self.model.stored.regimes[self.model.regime].get("cache", ())
        names = {kind: {self._moment(place): self._printer.text(form) for place, form in terms} for kind, terms in forms}
        return {kind: {"elements": elements[kind], "form": form} for kind, form in names.items()}

    @cached_property
    def _folded(self) -> tuple[dict[str, dict[str, str]], list[dict[str, str]], list[str]] | None:
        """(closed forms with known sizes as numbers, their letters, other known sizes); None if none is known."""
        if not self.known:
            return None
        from symflops.library.assumed_sizes import forms_of, symbols_of

        program = self.known.of(self.model.program.counting([self.model.convention]))
        case = program.case(self.model.regime, self.model.convention)
        return forms_of(program, case), *symbols_of(program, case)

    def _moment(self, position: int) -> str:
        """Return the name of the moment at ``position``, for padded lengths if the convention counts padding."""
        row = self.model.stored.moments[position]
        padded = self.model.stored.of_convention("lengths", self.model.convention) == PADDED and not row.get("side")
        lengths = self.model.stored.formulas.letters(row["formula"])
        return padded_name(row["name"]) if padded and lengths else str(row["name"])

    @property
    def symbols(self) -> list[dict[str, str]]:
        """A dict per letter of the closed form: a size with ``field`` and ``doc``, or with a ``formula``."""
        if self._folded is not None:
            return self._folded[1]
        sizes = [{"letter": row["letter"], "field": row["attribute"], "doc": row["doc"]} for row in self._document["fields"]]
        derived = [(row["letter"], self._printer.text(row["formula"])) for row in self._document["definitions"]]
        return sizes + [{"letter": letter.partition("@")[0], "formula": formula} for letter, formula in derived]

    @property
    def folded(self) -> list[str]:
        """Known sizes whose letters the closed forms no longer have, each as text ``name = value``."""
        return [] if self._folded is None else self._folded[2]

    @property
    def sums(self) -> dict[str, str]:
        """Moment of the closed form -> index set over whose items it sums."""
        return {name: row["items"] for name, row in self._named if row["items"] != ONCE}

    @property
    def of_batch(self) -> dict[str, str]:
        """Moment of the closed form that occurs once per batch -> its formula as text."""
        return {name: self._printer.text(row["formula"]) for name, row in self._named if row["items"] == ONCE}

    @property
    def _named(self) -> list[tuple[str, Mapping[str, Any]]]:
        """(name, row of the stored program) of each moment in the closed form."""
        named = {name for form in self.closed_form.values() for name in form}
        places = self.model.stored.places(self.model.convention)
        rows = [(self._moment(place), self.model.stored.moments[place]) for place in places]
        return [(name, row) for name, row in rows if name in named]

    def as_dict(self) -> dict[str, Any]:
        """The JSON object that ``symflops explain --json`` prints."""
        found = {"title": self.title, "batch": self.batch, "modules": self.rows, "roles": self.roles}
        found |= {"cache": self.cache} if self.cache else {}
        return {**self.estimate, **found, "closed_form": self.closed_form, "symbols": self.symbols, "folded": self.folded}

    def __repr__(self) -> str:
        """The tree of modules that do work, as lines of text."""
        found, unit = self.estimate, NAMES[self.estimate["unit"]]
        cells = [(f"module (in {unit})", "parameters", "forward", "backward", "share")]
        for row in self.rows:
            if row["total"] or not row["depth"]:
                figures = (scaled(row[key]) for key in ("parameters", "forward", "backward"))
                cells.append(("  " * row["depth"] + row["name"], *figures, f"{row['share']:.2%}"))
        wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]) for row in cells]
        rules = f"regime {found['regime']:.60}, convention {found['convention']}, batch {cut(str(self.batch), LONGEST)}"
        return "\n".join([self.heading, rules, *lines])

    def _repr_html_(self) -> str:
        """HTML table for notebooks: the modules that do work, with exact numbers."""
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
        caption = f"{self.heading}; regime {found['regime']}, convention {found['convention']}, batch {self.batch}"
        return html_table(caption, ("module", "parameters", f"forward {unit}", f"backward {unit}", "share"), cells)


def explain(
    model: Any,
    batch: Mapping[str, Any] | str | None = None,
    *,
    regime: str | None = None,
    convention: str | None = None,
    config: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> Explanation:
    """Break down the FLOPs of one training step by module.

    Args:
        model: The name of a spec, a class, a variant or a published model; a path of a spec, a config or a folder with one;
            a config; an estimator; or the result of :func:`symflops.load`.
        batch: For each stream a list of one entry per item, or a text such as ``"8192*8"``; by default one item of
            typical lengths.
        regime: The regime, by name or file; by default ``full``, or that of the estimator.
        convention: The convention, by name or file; by default ``symflops``, or that of the estimator.
        config: The config, if ``model`` is a name.
        settings: Other values for fields of the config, such as ``{"num_experts": 256}``; inner fields have dots.

    Raises:
        SymflopsError: as :func:`symflops.estimate`.
    """
    found = estimator_of(model, config, regime, convention, settings)
    batch = None if batch is None else batch_for(found, batch)
    if lacks_head(found, batch):
        found = estimator_of(model, config, given_head(regime or found.regime), convention, settings)
    return Explanation(found, batch)
