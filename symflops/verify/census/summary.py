"""Summarises the variations of a class: which fields are described, without effect, or guarded, and the words they hold.

Lists are guarded by the lengths at which a spec is exact, alone or relative to another list.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from symflops.evaluate.classes import admitted, class_name, kind_of, related, texts_in, values_at
from symflops.library.records.census import source_digest, version_of
from symflops.library.records.verified import known_inexact
from symflops.verify.census.fields import value_at
from symflops.verify.census.survey import EXACT, NONE, REFUSED, UNBUILT, UNRUN, WRONG, Row, Survey
from symflops.verify.census.variations import UNHEARD
from symflops.verify.classes import config_class_of, plain_lists, signature_of

MEASURES = ("number", "list")
SMALL = 3
"""Numbers up to this one may be wrong in isolation: 0 may mean null, and an axis of length 1 (as in 3 // 2) may broadcast."""
VERDICTS = (EXACT, NONE, REFUSED, WRONG, UNRUN, UNBUILT)


def summary(survey: Survey, rows: Sequence[Row]) -> dict[str, Any]:
    """Summarise the variations of one class as its entry in the census file.

    The entry groups the fields of the config: ``described`` ones have an effect that the spec has as well, ``free`` ones have
    none, ``guarded`` ones admit certain values only. ``differs`` lists values of described fields at which the spec is wrong.
    """
    by_path: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_path[row.path].append(row)
    read = {key for size in survey.model.spec.sizes for key in size.keys}
    described, free, guarded, words, unrun, differs = [], [], {}, {}, {}, {}
    for item in survey.fields:
        found = by_path.get(item.path, [])
        known = [plain_lists(value_at(base.json, item.path)) for base in survey.bases]
        good, bad = values_of(found, known)
        odd = [
            value for value in bad if kind_of(value) in MEASURES and not texts_in(value) and not is_of_other_length(value, good)
        ]
        same = any(row.verdict in (EXACT, NONE) and kind_of(row.changes[item.path]) in MEASURES for row in found)
        described_here = same and item.path in read
        counted = depends_on_data(survey) and not any(row.why.startswith("parameters") for row in found if row.verdict == WRONG)
        if described_here and not counted:  # larger numbers say nothing about small ones, which may be wrong in isolation
            odd = [value for value in odd if kind_of(value) != "number" or value > SMALL]
        lengths = lengths_of(item.path, good, odd, found, survey)
        if odd and not lengths and not counted and "least" not in guard(good, bad):
            lengths = parts_of(item.path, found, survey)
        if odd and not lengths and "least" not in guard(good, bad) and (described_here or counted):
            differs[item.path] = odd
            bad = [value for value in bad if value not in odd]
        texts = words_of(good, bad, known)
        strange = bool(set(texts_in(bad)) - set(texts))
        bad = [
            value for value in bad if not texts_in(value) or (isinstance(value, str) and value in texts)
        ]  # else a word is refused
        verdicts = {row.verdict for row in found}
        if bad or not (
            verdicts - {UNBUILT} or item.path in read or any(kind_of(value) in (*MEASURES, "mapping") for value in known)
        ):
            guarded[item.path] = guard(good, bad, lengths, idle_numbers(found))
        elif item.path in read or verdicts & {EXACT, REFUSED, WRONG}:
            described.append(item.path)
        elif item not in survey.unlisted:
            free.append(item.path)
        if (texts or strange) and not open_to_words(found):
            words[item.path] = texts
            if idle := sorted(unrun_words(found) - set(texts)):
                unrun[item.path] = idle
    absent = values_of_absent_fields(survey.kind, guarded, words)
    return {
        "described": described, "free": free, "guarded": guarded, "words": words, **({"left_out": absent} if absent else {}),
        **({"unrun": unrun} if unrun else {}), **({"differs": differs} if differs else {}),
        "variations": {name: count for name in VERDICTS if (count := Counter(row.verdict for row in rows)[name])},
        "made_from": made_from(survey.kind, survey.reference),
    }  # fmt: skip


def is_of_other_length(value: Any, good: Sequence[Any]) -> bool:
    """Whether ``value`` is a list, and all lists in ``good`` have the same length, which is another one."""
    lengths = {len(other) for other in good if isinstance(other, list)}
    return isinstance(value, list) and len(lengths) == 1 and len(value) not in lengths


def depends_on_data(survey: Survey) -> bool:
    """Whether the FLOPs of a class depend on data: ``inexact.yaml`` lists records of the class."""
    name = class_name(survey.reference)
    return any(f"/{name}/" in known for known in known_inexact(survey.model.file.root))


def words_of(good: Sequence[Any], bad: Sequence[Any], known: Sequence[Any]) -> list[str]:
    """Find the words that a field accepts.

    Args:
        good: Values of the field at which the spec is exact.
        bad: Values at which it is wrong.
        known: The field's values in the unchanged configs, whose words are always accepted.
    """
    wrong = {word for value in bad if isinstance(value, list) for word in texts_in(value)}
    own = {word for value in known for word in texts_in(value)}
    return sorted(own | {word for value in good for word in texts_in(value)} - wrong - {UNHEARD})


def idle_numbers(rows: Sequence[Row]) -> list[Any]:
    """Numbers in a field at which the spec's parameters are exact, but the real class fails to run."""
    return [value for row in rows if row.verdict == UNRUN and kind_of(value := row.changes[row.path]) == "number"]


def unrun_words(rows: Sequence[Row]) -> set[str]:
    """Words in a field at which the spec's parameters are exact, but the real class fails to run."""
    idle, wrong = (
        {word for row in rows if row.verdict == verdict for word in texts_in(row.changes[row.path])}
        for verdict in (UNRUN, WRONG)
    )
    return idle - wrong - {UNHEARD}


def open_to_words(rows: Sequence[Row]) -> bool:
    """Whether a field has no effect at any value tried other than null, an invented word among them."""
    unheard = [row.verdict for row in rows if UNHEARD in texts_in(row.changes[row.path])]
    matters = any(row.verdict in (EXACT, WRONG, REFUSED) for row in rows if row.changes[row.path] is not None)
    return set(unheard) == {NONE} and not matters


def values_of(rows: Iterable[Row], known: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split the values of a field: (values at which the spec is exact, values at which it is wrong).

    ``rows`` are the field's variations. ``known`` are its values in the unchanged configs, and always among the exact ones.
    """
    good, bad = list(known), []
    for row in rows:
        value = row.changes[row.path]
        if row.verdict in (EXACT, NONE):
            good.append(value)
        elif row.verdict == WRONG:
            bad.append(value)
    wrong, own = {json.dumps(value) for value in bad}, {json.dumps(value) for value in known}
    return [value for value in _distinct(good) if json.dumps(value) not in wrong - own], _distinct(bad)


def guard(
    good: Sequence[Any], bad: Sequence[Any], lengths: Mapping[str, Any] | None = None, idle: Sequence[Any] = ()
) -> dict[str, Any]:
    """Build the guard of a field: a dict that says which of the field's values are admitted.

    Its keys: ``values`` are admitted as they are, ``kinds`` are types admitted at any value, ``least`` is the smallest number
    from which all are admitted; and the keys of ``lengths``.

    Args:
        good: Values at which the spec is exact.
        bad: Values at which it is wrong.
        lengths: The rule of :func:`lengths_of`, if there is one.
        idle: Numbers at which the parameters are exact, but the class did not run.
    """
    wrong = {kind_of(value) for value in bad}
    kinds = {kind_of(value) for value in good if kind_of(value) in ("number", "list")} - wrong if bad else set()
    numbers = [value for value in good if kind_of(value) == "number"]
    low = [value for value in bad if kind_of(value) == "number"]
    above = low and max(low) <= SMALL and any(value > max(low) for value in (*numbers, *idle))
    least = max(low) + 1 if above else None
    right, odd = ({len(value) for value in known if isinstance(value, list)} for known in (good, bad))
    if not lengths and right - odd and "list" in wrong:
        lengths = {"lengths": sorted(right - odd)}
    if lengths and "related" in lengths:  # any number must be related so
        good, least = [value for value in good if kind_of(value) != "number"], None
    held = lengths.get("lengths", right) if lengths else ()
    values = [value for value in good if kind_of(value) not in kinds and not (isinstance(value, list) and len(value) in held)]
    found: dict[str, Any] = {"values": sorted(values, key=lambda value: (kind_of(value), json.dumps(value)))}
    if least is not None:
        found["values"] = [value for value in found["values"] if kind_of(value) != "number" or value < least]
        found["least"] = least
    return found | ({"kinds": sorted(kinds)} if kinds else {}) | dict(lengths or {})


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list({json.dumps(value): value for value in values}.values())


def made_from(kind: Any, reference: str) -> dict[str, str]:
    """Map the inputs of a census to versions: of the library, and hashes of the class's source files."""
    package = kind.__module__.partition(".")[0]
    found = {f"version {package}": version_of(package)} if version_of(package) else {}
    root = Path(inspect.getfile(sys.modules[package])).parent
    for one in (kind, config_class_of(kind)):
        if one is not None and ":" not in reference:
            name = f"{package}/{Path(inspect.getfile(one)).relative_to(root).as_posix()}"
            found[name] = source_digest(name)
    return found


def lengths_of(path: str, good: Sequence[Any], bad: Sequence[Any], rows: Sequence[Row], survey: Survey) -> dict[str, Any]:
    """Find a rule about lengths that admits a field's exact values and excludes wrong ones; empty if none.

    The rule is a dict with one key. ``shortest``: lists have at least this length. ``lengths``: they have one of these.
    ``related``: they are as long as another field's list, or hold rising indices below another field's number.

    Args:
        path: The field.
        good: Values of the field at which the spec is exact.
        bad: Values at which it is wrong.
        rows: Variations of the field.
        survey: The census of its class.
    """
    right, wrong = ({len(value) for value in values if kind_of(value) == "list"} for values in (good, bad))
    listed = bool(right and wrong) and not right & wrong
    number = any(kind_of(value) == "number" for value in good)  # which stands for all items
    if listed and not number and max(wrong) < min(right):
        return {"shortest": min(right)}
    found = next(relations(path, rows, survey), None) if bad else None
    if found and not (listed and number):
        return relation_guard(survey.kind, path, *found)
    return {"lengths": sorted(right)} if listed else {}


def parts_of(path: str, rows: Sequence[Row], survey: Survey) -> dict[str, Any]:
    """Find another field that is a multiple of the field ``path`` if and only if the spec is exact.

    The result is the guard of :func:`relation_guard` that requires such a multiple; empty if there is no such field.
    """
    found = next(relations(path, rows, survey, {"number": "part"}), None)
    return relation_guard(survey.kind, path, *found) if found else {}


BESIDE = {"list": "long", "number": "indices"}
"""Relation to test, by the kind of the other field: as long as that list, or indices below that number."""


def relations(path: str, rows: Sequence[Row], survey: Survey, words: Mapping[str, str] = BESIDE) -> Iterator[tuple[str, str]]:
    """Yield pairs (relation, other field) that the field ``path`` satisfies just where the spec is exact.

    A relation holds in every variation in ``rows`` at which the spec is exact, and in none at which it is wrong. ``words``
    names the relation to test, by the kind of the other field's value.
    """
    part = path.rpartition(".")[0]
    compared = [row for row in rows if kind_of(row.changes[path]) in MEASURES]
    right, wrong = ([row.config for row in compared if row.verdict in kinds] for kinds in ((EXACT, NONE), (WRONG,)))
    right += [base.json for base in survey.bases if kind_of(value_at(base.json, path)) in MEASURES]
    configs = [plain_lists(config) for config in (*right, *wrong)]
    inner: Any = (value_at(configs[0], part) if part else configs[0]) if right else None
    for name, value in inner.items() if isinstance(inner, Mapping) else ():
        other = f"{part}.{name}" if part else name
        word = words.get(kind_of(value))
        if word and other != path and not texts_in(value):
            tells = [related(value_at(config, path), {"related": [[word, other]]}, config) for config in configs]
            if tells == [True] * len(right) + [False] * len(wrong):
                yield word, other


def relation_guard(kind: Any, path: str, word: str, other: str) -> dict[str, Any]:
    """Build the guard of a field that is related to another: ``{"related": [[word, other, default]]}``.

    ``word`` names the relation, ``other`` the other field. Its default, or the default's length, is left out if unknown.
    """
    known = [value for value in default(kind, other) if kind_of(value) in MEASURES]
    return {"related": [[word, other, *(value if kind_of(value) == "number" else len(value) for value in known)]]}


def values_of_absent_fields(kind: Any, guarded: Mapping[str, Any], words: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Map fields to their defaults, where the field's guard or accepted words exclude the default.

    A default of null is left out if the guard has ``least``: the class computes a number, which is checked as a size.
    """
    found = {}
    for path in dict.fromkeys((*guarded, *words)):
        known = guarded.get(path, {})
        for value in default(kind, path):
            unknown = path in guarded and ("related" in known or not admitted(value, known))
            strange = path in words and not set(texts_in(value)) <= set(words[path])
            if (unknown or strange) and not (value is None and "least" in known):
                found[path] = value
    return found


def default(kind: Any, path: str) -> list[Any]:
    """The default of the config field ``path`` as the only item of a list; empty if the default is unknown."""
    config_class = config_class_of(kind)
    known = config_class().to_dict() if hasattr(config_class, "to_dict") else signature_of(config_class or kind)
    return list(json.loads(json.dumps(values_at(known, path), default=str)))
