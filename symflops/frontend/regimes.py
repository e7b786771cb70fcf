"""Reads the pages of regimes, from YAML, from a line of text, or from a record's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.diagnostics.findings import Diagnostic, Reporter, Source, Span, SpecError, did_you_mean
from symflops.frontend.document import Shapes
from symflops.frontend.fields import ADAPTER, LISTS, PASSES, PHASE, RECOMPUTE, REGIME
from symflops.model.regime import Adapter, Passes, Phase, Recompute, Regime
from symflops.ops.fields import words_of
from symflops.syntax.yaml_nodes import Node, Scalar, read_yaml
from symflops.syntax.yaml_nodes import Sequence as SequenceNode

NAMES = {
    "peft": ("base_layer", "lora_A.default", "lora_B.default"),
    "plain": ("base", "A", "B"),
}


def read_regime(source: Source) -> Regime:
    """The regime on a page.

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

    def regime(self, given: Mapping[str, Node]) -> Regime:
        lists: dict[str, Any] = {key: self.texts(given.get(key), key) for key in LISTS}
        if "train" not in given:
            lists["train"] = ("*",)
        text = self.shapes.text
        return Regime(
            text(given.get("name"), "'name'"),
            doc=text(given.get("doc"), "'doc'"),
            decode=word(given, "decode", self.shapes, self.report) if "decode" in given else "",
            lenient=self.flag(given.get("lenient"), False),
            adapters=tuple(self.adapter(node) for node in self.shapes.sequence(given.get("adapters"), "'adapters'")),
            recompute=self.recompute(given["recompute"]) if "recompute" in given else None,
            passes=self.passes(given["passes"]) if "passes" in given else Passes(),
            phases=tuple(self.phase(node) for node in self.shapes.sequence(given.get("phases"), "'phases'")),
            **lists,
            places=self.places,
        )

    def texts(self, node: Node | None, what: str) -> tuple[str, ...]:
        items = self.shapes.sequence(node, f"'{what}'")
        self.places |= {item.text: item.span for item in items if isinstance(item, Scalar)}
        return tuple(self.shapes.text(item, f"'{what}'") for item in items)

    def flag(self, node: Node | None, otherwise: bool) -> bool:
        if node is None:
            return otherwise
        text = self.shapes.text(node, "this")
        if text not in ("true", "false"):
            self.report.error("bad-shape", "this is true or false", node.span)
        return text == "true"

    def count(self, node: Node | None, otherwise: int, least: int = 1) -> int:
        if node is None:
            return otherwise
        text = node.text if isinstance(node, Scalar) else ""
        if not text.isdigit() or not least <= int(text) <= 10**6:
            self.report.error("bad-shape", f"this is a whole number of at least {least}", node.span)
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
            kind, self.count(given.get("rank"), 16), self.texts(given.get("targets"), "targets"), self.names(given.get("names"))
        )

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
        flags = {key: self.flag(given.get(key), key == "early_stop") for key in words_of(RECOMPUTE[2:])}
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
    """A regime from one line, ``name:key=value,key=a|b``: the page ``base`` with some fields said anew.

    ``r`` (or ``rank``), ``targets``, ``kind`` change its adapters, ``groups``, ``every``, ``early_stop``,
    ``attention_only`` its recomputation, ``forward``, ``detached``, ``timesteps``, ``accumulation`` its passes, ``train``,
    ``freeze``, ``loss`` the lists.

    Raises:
        SpecError: an unknown key or a value that does not fit it.
    """
    changes: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        changes[{"r": "rank"}.get(key.strip(), key.strip())] = value.strip()
    known = (*LISTS, *words_of((*ADAPTER, *RECOMPUTE, *PASSES)))
    for key in changes:
        if key not in known:
            hint = did_you_mean(key, known, f"keys: {', '.join(known)}")
            raise SpecError([Diagnostic("unknown-field", f"a regime has no '{key}'", None, hint)])
    lines = [f"name: {base.name}", "train: " + _listed(changes.pop("train", "|".join(base.train)))]
    lines += [f"{key}: {_listed(changes.pop(key))}" for key in LISTS if key in changes]
    adapter = {key: changes.pop(key) for key in words_of(ADAPTER) if key in changes}
    if adapter or base.adapters:
        old = base.adapters[0] if base.adapters else None
        targets = _listed(adapter.get("targets", "|".join(old.targets) if old else ""))
        names = _listed("|".join(old.names)) if old else "peft"
        kind, rank = adapter.get("kind", old.kind if old else "lora"), adapter.get("rank", str(old.rank if old else 16))
        lines.append(f"adapters: [{{kind: {kind}, rank: {rank}, targets: {targets}, names: {adapter.get('names', names)}}}]")
    recompute = {key: changes.pop(key) for key in words_of(RECOMPUTE) if key in changes}
    if recompute or base.recompute:
        groups = _listed(recompute.pop("groups", "|".join(base.recompute.groups) if base.recompute else ""))
        rest = "".join(f", {key}: {value}" for key, value in recompute.items())
        lines.append(f"recompute: {{groups: {groups}{rest}}}")
    if changes:
        lines.append("passes: {" + ", ".join(f"{key}: {value}" for key, value in changes.items()) + "}")
    strict = "targets" not in adapter and "groups" not in recompute and base.lenient
    lines.append(f"lenient: {str(strict).lower()}")
    return read_regime(Source("--regime", "\n".join(lines) + "\n"))


def _listed(text: str) -> str:
    return "[" + ", ".join('"' + item.replace('"', "") + '"' for item in text.split("|") if item) + "]"


def regime_of_words(words: Mapping[str, Any]) -> Regime:
    """The regime of a measured record, which uses the words of a page."""
    adapters = []
    for adapter in words.get("adapters") or ():
        names = NAMES["peft" if adapter.get("names") == "peft" else "plain"]
        adapters.append(Adapter(adapter["kind"], adapter["rank"], tuple(adapter["targets"]), names))
    again = words.get("recompute")
    recompute = None
    if again:
        flags = {key: again[key] for key in ("every", "attention_only", "early_stop", "reentrant") if key in again}
        recompute = Recompute(tuple(again["groups"]), **flags)
    lists: dict[str, Any] = {key: tuple(_plain(words.get(key))) for key in LISTS if key != "train"}
    return Regime("record", train=tuple(words.get("train", ["*"])), adapters=tuple(adapters), recompute=recompute, **lists)


def _plain(value: Sequence[str] | None) -> Sequence[str]:
    return value or ()


def word(given: Mapping[str, Node], key: str, shapes: Shapes, report: Reporter) -> str:
    """One of the words that a field allows."""
    text = shapes.text(given[key], f"'{key}'")
    words = next(field.words for field in REGIME if field.name == key)
    if text not in words:
        hint = did_you_mean(text, words, f"one of {', '.join(words)}")
        report.error("unknown-word", f"'{key}' cannot be '{text}'", given[key].span, hint)
    return text
