"""Reads the pages that are data: regimes and conventions."""

from __future__ import annotations

from collections.abc import Mapping

from symflops.ground.diagnostics import Reporter, Source, did_you_mean
from symflops.ground.nodes import Node, read_yaml
from symflops.model.regime import Convention, Regime
from symflops.stages.shapes import Shapes

REGIME = ("name", "doc", "decode", "train", "freeze", "loss", "input_grad", "force_grad")
CONVENTION = ("name", "doc", "pairs", "unseen", "length")
WORDS = {"pairs": ("useful", "all"), "unseen": ("true", "false"), "length": ("real", "padded"), "decode": ("step", "generate")}


def read_regime(source: Source) -> Regime:
    """The regime on a page.

    Raises:
        SpecError: an unknown field, or one of the wrong shape.
    """
    report = Reporter()
    shapes = Shapes(report)
    given = shapes.known(read_yaml(source), REGIME, "a regime")
    lists = {
        key: tuple(shapes.text(item, f"'{key}'") for item in shapes.sequence(given.get(key), f"'{key}'")) for key in REGIME[3:]
    }
    if "train" not in given:
        lists["train"] = ("*",)
    name, doc = shapes.text(given.get("name"), "'name'"), shapes.text(given.get("doc"), "'doc'")
    decode = word(given, "decode", shapes, report) if "decode" in given else ""
    report.check()
    return Regime(name, doc=doc, decode=decode, **lists)


def read_convention(source: Source) -> Convention:
    """The convention on a page.

    Raises:
        SpecError: an unknown field or word.
    """
    report = Reporter()
    shapes = Shapes(report)
    given = shapes.known(read_yaml(source), CONVENTION, "a convention")
    words = {key: word(given, key, shapes, report) for key in WORDS if key in given}
    name, doc = shapes.text(given.get("name"), "'name'"), shapes.text(given.get("doc"), "'doc'")
    report.check()
    return Convention(
        name, words.get("pairs", "useful"), words.get("unseen", "true") == "true", words.get("length", "real"), doc
    )


def word(given: Mapping[str, Node], key: str, shapes: Shapes, report: Reporter) -> str:
    """One of the words that a field allows."""
    text = shapes.text(given[key], f"'{key}'")
    if text not in WORDS[key]:
        hint = did_you_mean(text, WORDS[key], f"one of {', '.join(WORDS[key])}")
        report.error("unknown-word", f"'{key}' cannot be '{text}'", given[key].span, hint)
    return text
