"""``variants`` of a spec: what may stand there, what is found wrong and where, and which sizes a variant fixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model, load
from symflops.formula.formula import symbols
from symflops.read.read import read
from symflops.read.spec_files import NotFoundError, SpecFile
from symflops.support.findings import Source, SpecError

SPEC = """language: 2
name: stages
sizes:
  C: {key: [channels, in_channels], default: 3}
  W: {key: inner.widths, default: "[8, 16]"}
  N: {key: layers, default: 1}
  H: {key: heads}
  kind: {key: kind, default: "'plain'"}
  extra: {key: extra, optional: true}
derived: {K: "range(N)"}
%s
streams: {latent: [h, w]}
inputs:
  x: {stream: latent, width: C, layout: "b c h w"}
graph:
  - down:
      repeat: W
      item: c
      graph:
        - repeat: %s
          index: j
          graph:
            - plain.{j}: {op: conv, from: x, width: c, kernel: '[3, 3]', padding: 1, bias: false, when: "kind == 'plain'", to: y}
            - conv.{j}: {op: conv, from: x, width: c, kernel: '[3, 3]', padding: 1, when: "kind != 'plain'", to: y}
            - wide.{j}: {op: linear, from: x, width: extra, when: extra != null, to: z}
            - skip: {op: push, from: y, stack: s}
  - all: {op: gather, stack: s, like: x, to: z}
outputs: [z]
"""


def model(variants: str, layers: str = "K") -> Model:
    text = SPEC % (f"variants:\n  {variants}" if variants else "", layers)
    source = Source("stages.yaml", text)
    return Model(SpecFile(Path("specs"), Path("stages.yaml"), "stages.yaml"), read(source, lambda name: None))


def findings(variants: str, layers: str = "K", name: str = "") -> list:
    try:
        found = model(variants, layers)
        if name:
            found.structure(name, ["full"], ["torch"])
    except SpecError as error:
        return list(error.diagnostics)
    return []


def test_a_variant_is_part_of_a_config():
    found = model("big: {inner.widths: [4, 4, 6], kind: biased, extra: null, in_channels: 4}")
    assert found.variants == {"big": {"inner": {"widths": (4, 4, 6)}, "kind": "biased", "extra": None, "channels": 4}}
    ((name, values),) = [(variant.name.text, variant.sizes) for variant in found.spec.variants]
    assert name == "big" and [(letter.text, value) for letter, value in values] == [("W", (4, 4, 6)), ("kind", "biased"), ("extra", None), ("C", 4)]


def test_settings_of_a_variant_are_fixed_and_numbers_where_the_structure_asks():
    program = model("big: {inner.widths: [4, 4, 6], kind: biased, layers: 2}").structure("big").program
    assert dict(program.fixed) == {"W": (4, 4, 6), "kind": "biased", "N": 2} and program.variant == "big"
    assert [tensor.name for tensor in program.tensors if "bias" in tensor.name]
    assert {name for line in program.regimes[0].lines for name in symbols(line.forward)} <= {"extra"}
    default = model("big: {kind: biased}").typical()
    assert default.variant == "default" and dict(default.fixed) == {"W": (8, 16), "N": 1}


MISTAKES = {
    "unknown-size": ("big: {inner.width: [4]}", "inner.width", "did you mean 'inner.widths'"),
    "bad-name": ("Big: {kind: biased}", "Big", "lower case"),
    "bad-value": ("big: {inner.widths: 4}", "4", ""),
    "same-structure": ("big: {kind: biased}\n  other: {kind: biased}", "other", "one name"),
    "bad-shape": ("big: [kind]", "[", "mapping"),
    "duplicate-key": ("big: {channels: 4, in_channels: 4}", "in_channels", "two names"),
}


@pytest.mark.parametrize("code", MISTAKES)
def test_a_mistake_is_found_at_its_place(code):
    variants, place, hint = MISTAKES[code]
    found = [item for item in findings(variants) if item.code == code]
    assert len(found) == 1, findings(variants)
    span = found[0].span
    assert span.source.line(span.line)[span.column - 1 : span.end - 1].startswith(place)
    assert hint in found[0].hint or hint in found[0].message


@pytest.mark.parametrize(
    ("variants", "told"),
    [
        ("default: {kind: biased}", "'default' cannot name a variant"),
        ("derived: {kind: biased}", "'derived' cannot name a variant"),
        ("big: {kind: null}", "'kind' cannot be null"),
        ("big: {kind: 3}", "'kind' is 3, not a text"),
        ("big: {layers: 2.5}", "'layers' is 2.5, not a number"),
        ("big: {layers: -1}", "'layers' is -1, not a number"),
        ("big: {}", "'big' has the structure of the defaults"),
        ("big: {inner.widths: [8, 16]}", "'big' has the structure of the defaults"),
        ("one: {kind: biased}\n  two: {inner.widths: [8, 16], kind: biased}", "'two' has the structure of 'one'"),
    ],
)
def test_what_a_variant_cannot_say(variants, told):
    assert [item.message for item in findings(variants)] == [told]


def test_a_variant_says_only_what_its_structure_depends_on():
    (found,) = findings("big: {inner.widths: [4], channels: 5}", name="big")
    assert found.code == "needless-size" and found.span.source.line(found.span.line)[found.span.column - 1 :].startswith("channels")


def test_a_variant_fixes_the_structure():
    (found,) = findings("big: {inner.widths: [4]}", layers="range(H)", name="big")
    assert found.code == "structural-size" and "'H'" in found.message + found.hint
    assert findings("big: {inner.widths: [4], heads: 2}", layers="range(H)", name="big") == []


def test_a_variant_that_is_not_there_is_named():
    with pytest.raises(NotFoundError, match="no variant 'sdx': did you mean 'sdxl'"):
        load("unet_2d_condition").graph(variant="sdx")


def test_a_relative_has_variants_of_its_own(tmp_path):
    (tmp_path / "stages.yaml").write_text(SPEC % ("variants:\n  big: {kind: biased}", "K"))
    (tmp_path / "other.yaml").write_text("language: 2\nname: other\nextends: stages\nvariants: {small: {inner.widths: [4]}}\n")
    assert list(load(tmp_path / "other.yaml").variants) == ["small"]
