"""Reads regimes: from a YAML page, from the one-line form of ``--regime``, or from the fields of a measured record."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from symflops.ir.regime import Adapter, Passes, Phase, Recompute, Regime
from symflops.ops.kind import words_of
from symflops.read.field_tables import ADAPTER, HEAD, LISTS, PASSES, PHASE, RECOMPUTE, REGIME
from symflops.read.shapes import Shapes
from symflops.read.yaml_nodes import Node, Scalar, Sequence as SequenceNode, read_yaml
from symflops.support.findings import Diagnostic, Reporter, Source, Span, SpecError, did_you_mean

NAMES = {
    "peft": ("base_layer", "lora_A.default", "lora_B.default"),
    "plain": ("base", "A", "B"),
}
"""Names of the base, down and up projections below an adapted module, by the page's word for the naming scheme."""
FLAGS = ("dropout", "bias", "in_out")
MOST_PATTERNS, MOST_LETTERS, MOST_ADAPTERS, MOST_PHASES = 1_000, 500, 16, 16
"""Limits of a regime: patterns in all lists together, characters per pattern, adapters, further phases."""
FEWER = "say it at once: patterns have '*', an adapter several targets, a phase 'times'"
DECODE = next(field.words for field in REGIME if field.name == "decode")


def read_regime(source: Source) -> Regime:
    """Parse a regime from its YAML page.

    Raises:
        SpecError: an unknown field, or one of the wrong shape.
    """
    report = Reporter()
    reader = _Reader(Shapes(report), report)
    given = reader.shapes.known(read_yaml(source), words_of(REGIME), "a regime")
    regime = reader.regime(given)
    report.check()
    return regime


class _Reader:
    def __init__(self, shapes: Shapes, report: Reporter) -> None:
        self.shapes = shapes
        self.report = report
        self.places: dict[str, Span] = {}
        self.written = 0

    def bounded(self, node: Node | None, what: str, most: int, before: int = 0) -> tuple[Node, ...]:
        """Read a list of at most ``most`` items, to which ``before`` items of other lists count, too.

        Further items are reported and dropped.
        """
        items = self.shapes.sequence(node, what)
        if before + len(items) > most:
            message = f"a regime has at most {most:,} {what}, not {before + len(items):,}"
            self.report.error("regime-too-large", message, items[most - before].span, FEWER)
        return items[: most - before]

    def regime(self, given: Mapping[str, Node]) -> Regime:
        lists: dict[str, Any] = {key: self.texts(given.get(key), key) for key in LISTS}
        if "train" not in given:
            lists["train"] = () if "decode" in given else ("*",)
        text = self.shapes.text
        return Regime(
            text(given.get("name"), "'name'"),
            doc=text(given.get("doc"), "'doc'"),
            decode=self.shapes.one_of(given["decode"], DECODE, "'decode'") if "decode" in given else "",
            head=self.shapes.one_of(given["head"], HEAD.words, "'head'") if "head" in given else "",
            lenient=self.shapes.flag(given.get("lenient")),
            adapters=tuple(self.adapter(node) for node in self.bounded(given.get("adapters"), "adapters", MOST_ADAPTERS)),
            recompute=self.recompute(given["recompute"]) if "recompute" in given else None,
            passes=self.passes(given["passes"]) if "passes" in given else Passes(),
            phases=tuple(self.phase(node) for node in self.bounded(given.get("phases"), "phases", MOST_PHASES)),
            **lists,
            places=self.places,
        )

    def texts(self, node: Node | None, what: str) -> tuple[str, ...]:
        items = self.bounded(node, f"texts in '{what}' and its other lists", MOST_PATTERNS, self.written)
        self.written += len(items)
        for item in items:
            if isinstance(item, Scalar) and len(item.text) > MOST_LETTERS:
                self.report.error("regime-too-large", f"a pattern has at most {MOST_LETTERS} characters", item.span, FEWER)
        self.places |= {item.text: item.span for item in items if isinstance(item, Scalar)}
        return tuple(self.shapes.text(item, f"'{what}'") for item in items)

    def count(self, node: Node | None, otherwise: int, least: int = 1) -> int:
        if node is None:
            return otherwise
        text = node.text if isinstance(node, Scalar) else ""
        if not re.fullmatch("[0-9]{1,7}", text) or not least <= int(text) <= 10**6:
            self.report.error("bad-shape", f"this is a whole number of at least {least} and at most a million", node.span)
            return otherwise
        return int(text)

    def adapter(self, node: Node) -> Adapter:
        given = self.shapes.known(node, words_of(ADAPTER), "an adapter")
        kind = self.shapes.text(given.get("kind"), "'kind'") or "lora"
        if kind not in ADAPTER[0].words:
            hint = did_you_mean(kind, ADAPTER[0].words, f"one of {', '.join(ADAPTER[0].words)}")
            self.report.error("unknown-word", f"there is no adapter '{kind}'", node.span, hint)
        if "targets" not in given:
            self.report.error("missing-field", "an adapter needs 'targets'", node.span, "patterns of module paths")
        return Adapter(
            kind, self.count(given.get("rank"), 16), self.texts(given.get("targets"), "targets"),
            self.names(given.get("names")), *(self.shapes.flag(given.get(flag)) for flag in FLAGS),
        )  # fmt: skip

    def names(self, node: Node | None) -> tuple[str, str, str]:
        if isinstance(node, SequenceNode) and len(node.items) == 3:
            base, down, up = self.texts(node, "names")
            return base, down, up
        word = self.shapes.text(node, "'names'") if node is not None else "peft"
        if node is not None and word not in NAMES:
            self.report.error(
                "unknown-word", f"adapters are not named '{word}'", node.span, f"{', '.join(NAMES)}, or three names"
            )
        return NAMES.get(word, NAMES["peft"])

    def recompute(self, node: Node) -> Recompute:
        given = self.shapes.known(node, words_of(RECOMPUTE), "'recompute'")
        if "groups" not in given:
            self.report.error("missing-field", "'recompute' needs 'groups'", node.span, "patterns of module paths")
        every = self.count(given.get("every"), 1)
        groups = self.texts(given.get("groups"), "groups")
        if every > 1:
            groups = tuple(f"{group[:-1]}::{every}" if group.endswith(".*") else group for group in groups)
        flags = {key: self.shapes.flag(given.get(key), key == "early_stop") for key in words_of(RECOMPUTE[2:])}
        return Recompute(groups, every, **flags)

    def passes(self, node: Node) -> Passes:
        given = self.shapes.known(node, words_of(PASSES), "'passes'")
        found = Passes(
            **{key: self.count(given.get(key), int(key != "detached"), int(key != "detached")) for key in words_of(PASSES)}
        )
        if found.detached > found.forward:
            self.report.error("bad-shape", "more passes are detached than there are", node.span)
        return found

    def phase(self, node: Node) -> Phase:
        given = self.shapes.known(node, words_of(PHASE), "a phase")
        return Phase(self.shapes.text(given.get("regime"), "'regime'"), self.count(given.get("times"), 1))


def inline_regime(text: str, base: Regime) -> Regime:
    """``base`` with changes from a line such as ``r=8,targets=a|b``.

    Args:
        text: ``key=value`` items separated by commas, lists separated by ``|``. The keys are the fields of adapters (``r`` is
            ``rank``), of recomputation and of passes, ``head``, and the lists ``train``, ``freeze``, ``loss``, ...
        base: The regime to change.

    Raises:
        SpecError: an unknown key or a value that does not fit it.
    """
    changes = _changes_of(text)
    head = changes.pop("head", base.head)
    name = f"{base.name}:head={head}" if head != base.head else base.name  # its batches have another form
    lines = [f"name: {name}", "train: " + _yaml_list(changes.pop("train", "|".join(base.train)))]
    lines += [f"head: {head}"] if head else []
    lists = {key: changes.pop(key, "|".join(getattr(base, key))) for key in LISTS if key != "train"}
    lines += [f"{key}: {_yaml_list(text)}" for key, text in lists.items() if text]
    adapter = {key: changes.pop(key) for key in words_of(ADAPTER) if key in changes}
    recompute = {key: changes.pop(key) for key in words_of(RECOMPUTE) if key in changes}
    if adapter or base.adapters:
        lines.append(_adapter_line(adapter, next(iter(base.adapters), Adapter("lora", 16, (), NAMES["peft"]))))
    if recompute or base.recompute:
        groups = recompute.pop("groups", "|".join(base.recompute.groups) if base.recompute else "")
        kept = {key: str(getattr(base.recompute or Recompute(()), key)).lower() for key in words_of(RECOMPUTE[2:])}
        lines.append(f"recompute: {_yaml_mapping({'groups': _yaml_list(groups), **kept, **recompute})}")
    if changes or base.passes != Passes():
        lines.append(f"passes: {_yaml_mapping({**asdict(base.passes), **changes})}")
    lines.append(f"lenient: {str('targets' not in adapter and base.lenient).lower()}")
    found = read_regime(Source("--regime", "\n".join(lines) + "\n"))
    return replace(found, decode=base.decode, phases=base.phases)


def _changes_of(text: str) -> dict[str, str]:
    changes: dict[str, str] = {}
    known = (*LISTS, *words_of((HEAD, *ADAPTER, *RECOMPUTE, *PASSES)))
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        changes[{"r": "rank"}.get(key.strip(), key.strip())] = value.strip()
    for key in changes:
        if key not in known:
            hint = did_you_mean(key, known, f"keys: {', '.join(known)}")
            raise SpecError([Diagnostic("unknown-field", f"a regime has no '{key}'", None, hint)])
    return changes


def _adapter_line(changes: Mapping[str, str], old: Adapter) -> str:
    kind, rank = changes.get("kind", old.kind), changes.get("rank", old.rank)
    targets, names = _yaml_list(changes.get("targets", "|".join(old.targets))), _yaml_list("|".join(old.names))
    flags = {name: changes.get(name, str(getattr(old, name)).lower()) for name in FLAGS}
    entries = {"kind": kind, "rank": rank, "targets": targets, "names": changes.get("names", names), **flags}
    return f"adapters: [{_yaml_mapping(entries)}]"


def _yaml_mapping(entries: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"


def _yaml_list(text: str) -> str:
    return "[" + ", ".join('"' + item.replace('"', "") + '"' for item in text.split("|") if item) + "]"


def regime_of_mapping(words: Mapping[str, Any]) -> Regime:
    """The regime of a measured record, which has the fields of a regime page; null counts as absent.

    Raises:
        SpecError: as :func:`read_regime`.
    """
    given = {key: value for key, value in words.items() if value is not None}
    adapters = given.get("adapters")
    if isinstance(adapters, list):  # records list the three names instead of 'plain'
        given["adapters"] = [
            {**one, "names": "plain"} if isinstance(one, dict) and one.get("names", "peft") != "peft" else one
            for one in adapters
        ]
    return read_regime(Source("the record's regime", json.dumps({"name": "record", **given})))
