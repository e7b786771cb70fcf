"""Evidence for an estimate: class, config fields read, measured records, and work not measured."""

from __future__ import annotations

from fractions import Fraction

from symflops.evaluate.classes import class_name, named_classes
from symflops.evaluate.conditions import UnknownNameError, holds
from symflops.evaluate.config import as_read, look_up
from symflops.evaluate.sizes import default, sizes_of
from symflops.evaluate.unread import census_of, unread
from symflops.ir.format import line_of
from symflops.support.errors import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from symflops.evaluate.stored import Stored


FOR_ALL, PROVEN, MEASURED, AS_SPECIFIED = "proven for all sizes", "proven here", "measured", "as specified"
"""The grades of evidence, strongest first."""

TRACED = ("full", "forward")
"""The regimes, as they are asked for, whose formulas an identity proves."""

LIBRARIES = ("transformers.", "diffusers.", "torch.")
LONGEST_KEY = 60
"""Characters from which a key is abbreviated in the middle."""


def evidence(model: Any) -> dict[str, Any]:
    """Collect the evidence for an estimate: class, fields read, census, records and grade.

    Args:
        model: The estimator. Its ``measured`` holds the number of exact records per class and the reason for ``inexact`` ones.
            Its ``proven`` is True if the real class was built and agrees in every parameter.

    Returns:
        ``grade``; ``class``; ``named_by``, the field that names the class (None for the spec's first class); ``read``,
        ``defaulted`` (absent) and ``unread`` (unknown to spec and class) config keys; ``census``, the number of the class's
        fields by kind (None without a census); ``records``, the number of exact records of the class; ``why``, the reason
        for a lower grade or the work that was not measured; ``exception``, which the convention makes for the class.
    """
    document, found = model.stored.document, as_read(model.stored.document, model.config)
    references = document["references"]
    field, name = next(named_classes(found), (None, ""))
    if not name and found.get("model_type") in document["model_types"]:
        field = "model_type"
    census, kind = census_of(document, name), name or (class_name(references[0]) if references else None)
    keys = [row["keys"] for row in document["fields"]]
    given = [next((key for key in names if look_up(found, [key]) is not None), "") for names in keys]
    told = {
        "class": kind,
        "named_by": field,
        "read": list(filter(None, given)),
        "defaulted": [names[0] for names, key in zip(keys, given, strict=True) if not key],
        "unread": [path for path, _ in unread(document, found)],
        "census": None if census is None else {kind: len(census.get(kind, ())) for kind in ("described", "free", "guarded")},
        "records": model.measured.get("records", {}).get(kind, 0),
    }
    grade, why = graded(model, told)
    left, broken = (None, "") if grade == AS_SPECIFIED else domain_left(model, str(kind))
    if left is not None:
        grade, why = FOR_ALL, "; ".join(filter(None, [f"where {', '.join(left)}" if left else "", unseen(model)]))
    elif broken:
        why = "; ".join(filter(None, [f"outside of where the class was proven: {broken}", why or unseen(model)]))
    return {"grade": grade, **told, "why": why or unseen(model), "exception": model.exception or None}


def domain_left(model: Any, kind: str) -> tuple[list[str] | None, str]:
    """Conditions on lengths under which the formulas of an estimate were proven for all sizes; None if they were not.

    They were if its class has an identity (:mod:`symflops.library.records.identities`) whose conditions on sizes hold for the
    config, and which has the same values of all other sizes. The second value is a condition on sizes that does not hold, such
    as one whose opposite the class refuses; empty if there is none.
    """
    broken = ""
    for one in model.measured.get("identities", ()):
        if class_name(one["reference"]) == kind and all(
            same(model.sizes.get(letter), value) for letter, value in one["held"].items()
        ):
            left, broken = undecided(one["where"], model)
            if not broken:
                return left, ""
    return None, broken


def same(mine: Any, held: Any) -> bool:
    """Whether a size has a held value; of a list, whether all items do that are not None, and there are as many."""
    if isinstance(held, list) and isinstance(mine, (list, tuple)):
        return len(held) == len(mine) and all(other is None or same(one, other) for one, other in zip(mine, held, strict=True))
    mine = str(mine) if isinstance(mine, Fraction) else mine
    return type(mine) is type(held) and bool(mine == held)


def undecided(where: Sequence[str], model: Any) -> tuple[list[str], str]:
    """The conditions that read no size of the model but lengths, and one that does not hold; empty if all do."""
    letters = {key: row["letter"] for row in model.stored.document["fields"] for key in row["keys"]}
    config = as_read(model.stored.document, model.config)

    def value(name: str) -> Any:
        """The number of a field, or of an item of a list of the spec.

        Raises:
            ValueError: the field has no number, so a condition on it is not known to hold.
        """
        above, _, place = name.rpartition(".")
        if name in letters:
            found = model.sizes[letters[name]]
        elif place.isdecimal() and above in letters:
            items = model.sizes[letters[above]]
            found = items[int(place)] if isinstance(items, (list, tuple)) and int(place) < len(items) else None
        else:
            return look_up(config, [name])
        if not isinstance(found, (int, Fraction)):
            raise ValueError(f"{name} is no number")
        return found

    left = []
    for condition in where:
        try:
            if not holds(condition, value):
                return [], condition
        except UnknownNameError:
            left.append(condition)
        except ValueError:
            return [], condition
    return left, ""


def graded(model: Any, told: Mapping[str, Any]) -> tuple[str, str]:
    """Grade an estimate: (grade, reason why it is not higher, or empty); ``told`` is the dict of :func:`evidence` so far.

    Records measure a class; rule checks (:mod:`symflops.derive.regime_checks`) measure a regime. A class proven by its
    parameters needs no records, but a proof does not cover an unmeasured regime.
    """
    kind, names_no_class = told["class"], told["named_by"] in (None, "model_type")
    why = next(filter(None, [model.stored.regimes[model.regime].get("unmeasured", ""), *inexact(model.measured)]), "")
    if why or model.proven:
        return (AS_SPECIFIED, why) if why else (PROVEN, "")
    if not any(reference.startswith(LIBRARIES) for reference in model.stored.document["references"]):
        why = "the spec names no class of a library"
    elif not told["records"]:
        why = f"{kind} has no record"
    elif told["census"] is None:
        why = f"the fields of {kind} have no census"
    elif told["unread"] and names_no_class:  # a named class ignores unknown fields
        why = f"nothing reads the config's {shortened(told['unread'])}"
    return (AS_SPECIFIED, why) if why else (MEASURED, "")


def inexact(measured: Mapping[str, Any]) -> list[str]:
    """List the reason why some records of a spec are inexact, as one line; empty if all are exact."""
    return [f"not every record is exact: {measured['inexact']}"] if measured.get("inexact") else []


def unseen(model: Any) -> str:
    """Describe the work of an estimate that PyTorch's FLOP counter cannot measure; empty if there is none."""
    stored, convention = model.stored, model.convention
    document, useful = stored.document, stored.of_convention("pairs", convention) == "useful"
    if convention in dict(stored.regimes[model.regime].get("own", ())):
        return f"the rules of convention '{convention}' are its own"
    lines = (line_of(document, document["all_lines"][place]) for place in stored.lines(model.regime, convention))
    work = [document["work"][line[1]] for line in lines]
    amounts = (document["all_amounts"][row["amount"]] for row in work)
    if useful and any(amount["useful"] != amount["executed"] for amount in amounts):
        return "which pairs a mask leaves is the spec's word"
    missed = sorted({row["operator"] for row in work if not row.get("seen", True)})
    told = missed and stored.of_convention("unseen", convention)
    return f"PyTorch's counter does not see all of {', '.join(missed)}" if told else ""


def left_to_class(program: Stored, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each number of layers that a diffusers config omits, with the class's default.

    diffusers saves every argument of a class, so a file without one was edited. transformers omits defaults.
    """
    document, found = program.document, as_read(program.document, config)
    written = any(reference.startswith("diffusers.") for reference in document["references"])
    if not written or not any(look_up(found, row["keys"]) is not None for row in document["fields"]):
        return
    name = next((name for _, name in named_classes(found)), class_name(document["references"][0]))
    for row in document["fields"]:
        if row["kind"] == "count" and look_up(found, row["keys"]) is None:
            yield f"the config has no '{row['keys'][0]}': {sizes_of(program, found)[row['letter']]} is the default of {name}"


def grade_of(found: Mapping[str, Any]) -> str:
    """Format the grade of :func:`evidence` and, if it has one, its reason in brackets."""
    return f"{found['grade']} ({found['why']})" if found["why"] else str(found["grade"])


def summary(found: Mapping[str, Any]) -> list[str]:
    """Format :func:`evidence` as two lines, and a third for an exception of the convention, if any."""
    kind = found["class"] or "no library class"
    by = {None: "the spec's first", "model_type": "as the model type says"}.get(found["named_by"], f"by {found['named_by']}")
    census = found["census"]
    counts = "no census"
    if census:
        counts = "census: {described} fields described, {free} without effect, {guarded} guarded".format_map(census)
    first = f"evidence: {grade_of(found)}; {kind} ({by}); {found['records']} measured records; {counts}"
    rest = [f"{len(found['read'])} fields read", f"{len(found['defaulted'])} by default"]
    if found["defaulted"]:
        rest[-1] += f" ({shortened(found['defaulted'])})"
    if found["unread"]:
        rest.append(f"{len(found['unread'])} unread ({shortened(found['unread'])})")
    more = [f"  the convention makes an exception for this class: {found['exception']}"] if found.get("exception") else []
    return [first, f"  {', '.join(rest)}", *more]


def shortened(names: list[str], most: int = 4) -> str:
    """Join the first ``most`` names with commas, with long names cut; ``...`` stands for further names."""
    return ", ".join(cut(name, LONGEST_KEY) for name in names[:most]) + (", ..." if len(names) > most else "")


def parts_left_out(stored: Stored, regime: str, config: Mapping[str, Any], sizes: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each part of the model that the config has but the regime does not run."""
    for field in stored.regimes[regime].get("left_out", ()):
        value = look_up(as_read(stored.document, config), field["keys"])
        value = default(field, stored, sizes) if value is None else value
        if value:
            part, doc, key = field["part"], field["doc"], field["keys"][0]
            yield f"regime '{regime}' leaves out the {doc} ('{key}' is {value}): '{regime}:parts={part}' runs them"
