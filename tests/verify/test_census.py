"""The census of a class: what is varied, what comes out, and when it is stale."""

from __future__ import annotations

import json
import textwrap
from types import SimpleNamespace

import pytest
import torch
import transformers

import symflops
from symflops.api import load
from symflops.cli.main import main
from symflops.evaluate.classes import check_census
from symflops.formula.table import ConfigError
from symflops.library.records.census import census_path, spec_digest, stale
from symflops.support.findings import SymflopsError
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.census.fields import ConfigField, fields_of, further_fields, read_fields, settable
from symflops.verify.census.observation import fitting
from symflops.verify.census.summary import guard, is_of_other_length, open_to_words, parts_of, values_of_absent_fields
from symflops.verify.census.survey import Row, Survey
from symflops.verify.census.take import census_by_class, document_of, of_each_config, recorded as figures_of, text_of
from symflops.verify.census.variations import UNHEARD, Words, alike, partnered, unlisted, variations, words_in
from symflops.verify.live import reference_of
from tests.sampling import NIGHTLY, sampled
from tests.shipped import FILES, NAMES, load as shipped
from tests.verify import variations as recorded

MODULE = """
    import torch

    class Toy(torch.nn.Module):
        def __init__(self, width: int = 4, kind: str = "plain", extra: bool = False, rate: float = 0.5, inner: int | None = None, count: int = 1):
            super().__init__()
            if kind not in ("plain", "gated", "twice"):
                raise ValueError(kind)
            self.up = torch.nn.Linear(width, 2 * width if kind == "gated" else 3 * width if kind == "twice" else width)
            self.also = torch.nn.Linear(width, inner or width) if extra else None
            self.more = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(count - 1))
            self.config = dict(width=width, kind=kind, extra=extra, rate=rate, inner=inner, count=count)

        def forward(self, x):
            return self.up(x)
"""
SPEC = """
language: 2
name: toy
reference: toy:Toy
sizes:
  D: {key: width, default: 4}
  word: {key: kind, default: "'plain'"}
streams: {text: [x]}
inputs: {x: {stream: text, width: D, layout: "b x c"}}
graph:
  - up: {op: linear, from: x, width: 2*D if word == 'gated' else D, to: y}
outputs: [y]
"""
CASES = "- config: {width: 6}\n  batch: {text: [3]}\n"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("specs")
    (folder / "toy.py").write_text(textwrap.dedent(MODULE))
    (folder / "toy.yaml").write_text(SPEC)
    (folder / "toy.cases.yaml").write_text(CASES)
    return load(folder / "toy.yaml")


@pytest.fixture(scope="module")
def census(toy):
    return census_by_class(toy, 18)


def test_every_field_is_described_free_or_guarded(toy, census):
    found = document_of(toy, census)["classes"]["toy:Toy"]
    assert found["described"] == ["width", "kind"]
    assert found["free"] == ["rate", "inner"]  # 'inner' matters only beside 'extra', which is guarded
    assert found["guarded"] == {"extra": {"values": [False, None]}, "count": {"values": [0, 1]}}
    assert found["words"] == {"kind": ["gated", "plain"]}  # 'twice' is built, and not described


def test_the_verdicts_are_those_of_the_class(census):
    rows = {(row.path, json.dumps(row.changes[row.path])): row.verdict for row in census["toy:Toy"].rows}
    assert rows["kind", '"gated"'] == "exact" and rows["kind", '"twice"'] == "wrong" and rows["kind", f'"{UNHEARD}"'] == "unbuilt"
    assert rows["extra", "true"] == "wrong" and rows["rate", "1.0"] == "none"
    assert rows["width", "null"] == "unbuilt" and {verdict for (path, _), verdict in rows.items() if path == "width"} == {"exact", "unbuilt"}


def test_a_census_is_compared_with_its_file_but_for_counts(toy, census, tmp_path, monkeypatch, capsys):
    for name, text in (("toy.py", textwrap.dedent(MODULE)), ("toy.yaml", SPEC), ("toy.cases.yaml", CASES)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    document = document_of(toy, census)
    document["classes"]["toy:Toy"]["variations"] = {"exact": 1}
    path = census_path(tmp_path / "toy.yaml")
    path.write_text(text_of(document))
    assert main(["census", "--compare", str(tmp_path / "toy.yaml")]) == 0
    document["classes"]["toy:Toy"]["guarded"]["extra"]["values"] = [False]
    path.write_text(text_of(document))
    assert main(["census", "--compare", str(tmp_path / "toy.yaml")]) == 1
    assert "toy.census.json is not what comes out" in capsys.readouterr().out


LEVELS = """
    import torch

    class Levels(torch.nn.Module):
        def __init__(self, widths: tuple = (4, 6), depths: tuple = (1, 2), kernel: int = 3, count: int = 2, marked: tuple = (0,), known: int = 3):
            super().__init__()
            sides = [kernel] if isinstance(kernel, int) else list(kernel)
            self.stages = torch.nn.ParameterList(torch.zeros(w * d) for w, d in zip([*widths, 7, 8], depths))
            self.last = torch.nn.Linear(5, widths[-1])
            self.kernel = torch.nn.Parameter(torch.zeros(sides))
            self.marks = torch.nn.ParameterList(torch.zeros(2) for at in range(known) if at in marked)
            self.heads = torch.nn.ParameterList(torch.zeros(4) for _ in range(count))
            self.config = dict(widths=widths, depths=depths, kernel=kernel, count=count, marked=marked, known=known)

        def forward(self, x):
            return self.last(x)
"""
LEVELS_SPEC = """
language: 2
name: levels
reference: levels:Levels
sizes:
  W: {key: widths, default: "[4, 6]"}
  N: {key: depths, default: "[1, 2]"}
  k: {key: kernel, type: each, default: 3}
  c: {key: count, default: 2}
  m: {key: marked, default: "[0]"}
  n: {key: known, default: 3}
streams: {text: [x]}
inputs: {x: {stream: text, width: 5, layout: "b x c"}}
graph:
  - stages: {repeat: W, index: s, graph: [{op: parameter, shape: "[W[s]*N[min(s, len(N) - 1)]]", to: _}]}
  - last: {op: linear, from: x, width: "W[-1]", to: y}
  - kernel: {op: parameter, shape: "[per(k, 1)[0]]", to: _}
  - marks: {repeat: m, graph: [{op: parameter, shape: [2], to: _}]}
  - heads: {repeat: W, index: t, graph: [{op: parameter, shape: [4], to: _}]}
outputs: [y]
"""


def test_lengths_that_tell_exact_lists_from_wrong_ones_are_a_rule(tmp_path):
    (tmp_path / "levels.py").write_text(textwrap.dedent(LEVELS))
    spec = tmp_path / "levels.yaml"
    spec.write_text(LEVELS_SPEC)
    (tmp_path / "levels.cases.yaml").write_text("- config: {widths: [4, 6], depths: [1, 2]}\n  batch: {text: [3]}\n- config: {widths: [4], depths: [3], count: 1, kernel: [2]}\n  batch: {text: [3]}\n")
    model = load(spec)
    found = document_of(model, census_by_class(model, 18))
    guarded = found["classes"]["levels:Levels"]["guarded"]
    assert guarded["depths"]["related"] == [["long", "widths", 2]]
    assert guarded["widths"]["related"] == [["long", "depths", 2]]
    assert guarded["count"]["related"][0][0] == "long"
    assert guarded["marked"] == {"values": [], "related": [["indices", "known", 3]]}
    assert guarded["kernel"] == {"values": [], "kinds": ["number"], "lengths": [1]}
    census_path(spec).write_text(text_of(found))
    model = load(spec)
    for config in ({}, {"depths": [3, 1]}, {"kernel": [5]}, {"kernel": 2}, {"marked": [0, 2]}):
        model.estimator(config)
    for config, told in (({"depths": [1]}, "as long as 'widths'"), ({"count": 1}, "as long as"), ({"kernel": [3, 3]}, "any number, lists of 1"), ({"marked": [2, 1]}, "known: rising, below 'known'")):
        with pytest.raises(Exception, match=told):
            model.estimator(config)


def test_what_was_found_is_refused(toy, census, tmp_path):
    spec = tmp_path / "toy.yaml"
    spec.write_text(SPEC)
    census_path(spec).write_text(text_of(document_of(toy, census)))
    model = load(spec)
    for config in ({"width": 9}, {"kind": "gated", "rate": 0.1}, {"extra": False}):
        model.estimator(config)
    for config in ({"kind": "twice"}, {"kind": "else"}, {"extra": True}, {"count": 3}):
        with pytest.raises(Exception, match=next(iter(config))):
            model.estimator(config)


def test_a_list_of_another_length_than_all_exact_ones_is_guarded():
    assert is_of_other_length([1, 2, 2, 2], [[1, 2, 2], [2, 4, 4], None])
    assert not is_of_other_length([4, 2, 6], [[1, 2, 2], [2, 4, 4]])
    assert not is_of_other_length([8], [[1, 2], [1, 2, 2]]), "a list per level has any length"
    assert guard([[1, 2, 2], [2, 4, 4]], [[1, 2, 2, 2]])["lengths"] == [3]


def test_a_census_is_stale_when_the_spec_says_something_else(toy, census, tmp_path):
    spec = tmp_path / "toy.yaml"
    spec.write_text(SPEC)
    file = load(spec).file
    assert list(stale(file, load(spec).spec)) == ["'toy' has no census"]
    census_path(spec).write_text(text_of(document_of(load(spec), census)))
    assert not list(stale(file, load(spec).spec))
    spec.write_text("# a comment\n" + SPEC.replace("key: width,", "key: width, doc: how wide it is,"))
    assert not list(stale(file, load(spec).spec))
    spec.write_text(SPEC.replace("2*D", "3*D"))
    assert list(stale(file, load(spec).spec)) == ["the spec of 'toy' has changed since its census"]


def test_a_census_is_stale_when_the_library_is_another(tmp_path):
    file = FILES["llama"]
    document = json.loads(census_path(file.path).read_text())
    entry = next(iter(document["classes"].values()))
    entry["made_from"] = dict.fromkeys(entry["made_from"], "0" * 64)
    spec = tmp_path / "llama.yaml"
    spec.write_text(file.path.read_text())
    census_path(spec).write_text(json.dumps(document))
    reasons = list(stale(load(spec).file, shipped("llama").spec))
    assert len(reasons) == len(entry["made_from"]) + (document["spec"] != spec_digest(shipped("llama").spec)) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_no_shipped_census_is_stale(name):
    model = shipped(name)
    reasons = list(stale(model.file, model.spec))
    assert not reasons or reasons == [f"'{name}' has no census"], f"run 'symflops census {name}'"


def test_the_words_of_a_source():
    import diffusers
    import transformers
    found = Words(diffusers.DiTTransformer2DModel)
    assert {"geglu", "swiglu", "gelu-approximate"} <= set(found.of(ConfigField("activation_fn")))
    assert {"ada_norm_zero", "ada_norm_single"} <= set(found.of(ConfigField("norm_type")))
    assert {"silu", "prelu", "xielu"} <= set(Words(transformers.LlamaForCausalLM).of(ConfigField("hidden_act")))
    assert ConfigField("problem", "Literal['one', 'two'] | None").literals == ["one", "two"]


def test_words_are_found_in_every_form_of_comparison(tmp_path):
    from symflops.verify.classes import module_of_file

    path = tmp_path / "forms.py"
    path.write_text(
        textwrap.dedent("""
        TABLE = {"seven": 7}
        def chosen(self, config, kind):
            if config.first == "one" or "two" == self.first or kind in ("three", "four") or kind not in ["five"]:
                return TABLE[config.table]
            match kind:
                case "six" | "eight":
                    return 1
            return kind.startswith("nine")
        """)
    )
    found = set(words_in(module_of_file(path)))
    assert {("first", "one"), ("first", "two"), ("table", "seven")} <= found
    assert {word for name, word in found if name == "kind"} == {"three", "four", "five", "six", "eight", "nine"}


def test_every_kind_of_value_is_varied():
    from random import Random

    def of(value, annotation="", words=()):
        return list(variations(ConfigField("f", annotation), value, words, [96], Random(1)))

    assert of(True) == [False, None]
    assert all(isinstance(other, int) for other in of(6)[:-1]) and min(of(6)[:-1]) < 6 < max(of(6)[:-1]) and of(6)[-1] is None
    assert of("a", words=["a", "b"]) == ["b", UNHEARD, None]
    assert [2, 4] in of([1, 2]) and [1] in of([1, 2]) and [1, 2, 2] in of([1, 2]) and [] in of([1, 2])
    assert ["b", "b"] in of(["a", "a"], words=["b"])
    assert True in of(None, "bool | None") and 96 in of(None, "int | None") and "b" in of(None, "str | None", ["b"])


def test_numbers_that_cannot_change_alone_change_with_a_related_one():
    fields = [ConfigField(name) for name in ("width", "heads", "other", "levels", "sides")]
    config = {"width": 96, "heads": 4, "other": 7, "levels": [1, 2], "sides": [3, 4]}
    assert next(iter(partnered("heads", 4, 8, config, fields))) == {"heads": 8, "width": 192}
    assert list(partnered("levels", [1, 2], [1, 2, 2], config, fields)) == [{"levels": [1, 2, 2], "sides": [3, 4, 4]}]


def test_classes_that_share_a_config_class_share_a_census(tmp_path):
    names = ["transformers.LlamaForCausalLM", "transformers.LlamaModel", "transformers.BertModel"]
    assert of_each_config(names, tmp_path) == [names[0], names[2]]


@pytest.mark.parametrize("name", sampled(sorted(recorded.variations()), 48, 12))
def test_no_recorded_variation_is_silently_wrong(name):
    rows = list(recorded.rows_of(name))
    step = 1 if NIGHTLY else max(1, len(rows) // 12)
    found = {json.dumps(row["set"]): recorded.verdict(name, row, config) for row, config in rows[::step]}
    assert not [changes for changes, verdict in found.items() if verdict == "wrong"]
    assert "exact" in found.values()


def test_a_number_that_must_divide_another_is_told_so():
    """Key and value heads beyond the query heads are repeated no time at all: the class runs, and attends to nothing."""

    class Grouped:
        def __init__(self, heads: int = 24, groups: int = 12, width: int = 8): ...

    def row(groups, verdict, heads=4):
        return Row(0, "groups", {"groups": groups}, verdict, config={"heads": heads, "groups": groups, "width": 5})

    survey = SimpleNamespace(kind=Grouped, bases=[SimpleNamespace(json={"heads": 4, "groups": 2, "width": 5})])
    assert parts_of("groups", [row(4, "exact"), row(1, "none"), row(6, "wrong")], survey) == {"related": [["part", "heads", 24]]}
    assert parts_of("groups", [row(6, "exact"), row(1, "none"), row(4, "wrong")], survey) == {}


def test_what_a_config_leaves_out_is_checked_where_a_relation_guards_it():
    """Layers that a Qwen3-VL image encoder has by default, 8, 16 and 24, are too many for one of 8 layers."""
    config = {"architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", "vision_config": {"depth": 8}}
    batch = {"text": [64], "images": [(1, 4, 4)]}
    with pytest.raises(SymflopsError, match=r"deepstack_visual_indexes' is \[8, 16, 24\] by default"):
        symflops.estimate(config, batch)
    shown = {**config, "vision_config": {"depth": 8, "deepstack_visual_indexes": [1, 2, 3]}}
    with torch.device("meta"):
        real = transformers.Qwen3VLForConditionalGeneration(transformers.Qwen3VLConfig.from_dict(shown))
    assert symflops.estimate(shown, batch)["parameters"] == sum(weight.numel() for weight in real.parameters())


def test_what_a_class_takes_for_what_is_left_out_is_told_unless_it_is_exact():
    class Left:
        def __init__(self, must, width: int = 8, kind: str = "odd", head: int | None = None, depth: int = 3, flag: bool = True): ...

    related = {"values": [], "related": [["part", "width", 8]]}
    guarded = {"must": {"values": [1]}, "width": {"values": [4]}, "head": {"values": [], "least": 2}, "depth": related, "flag": {"values": [True]}}
    absent = values_of_absent_fields(Left, guarded, {"kind": ["even"]})
    assert absent == {"width": 8, "depth": 3, "kind": "odd"}  # 'head' is made of other sizes
    document = {"name": "left", "census": {"Left": {"guarded": guarded, "words": {"kind": ["even"]}, "left_out": absent}}}
    check_census(document, {"must": 1, "width": 4, "kind": "even", "depth": 2})
    for config, told in (({"kind": "even", "depth": 2}, "'width' is 8 by default"), ({"width": 4, "depth": 2}, "'kind' is 'odd' by default"), ({"width": 4, "kind": "even"}, "'depth' is 3 by default")):
        with pytest.raises(ConfigError, match=told):
            check_census(document, config)


def test_a_number_is_tried_at_those_beside_it_that_divide_it():
    config = {"width": 64, "heads": 4, "groups": 2, "layers": 3, "flag": True, "text": {"width": 6, "heads": 3}}
    assert alike("width", 64, config) == [2, 4] and alike("width", 64, config, (1, 2)) == [2, 4, 8]
    assert alike("text.width", 6, config) == [3]
    assert alike("layers", 3, config) == [] == alike("flag", True, config)


@pytest.mark.parametrize(("name", "size"), sampled([("bitnet", 1), ("falcon", 1), ("modernbert_masked_lm", 1), ("olmoe", 1), ("lumina2", 2)], 4, 1))
def test_heads_of_one_number_or_pair_are_refused_where_they_are_broadcast(name: str, size: int):
    """A width as large as its heads leaves one number to a head, whose rotation has two: the class broadcasts, and does more."""
    model = shipped(name)
    cases = [case for case in cases_of(model.file) if not case.config.get("alibi")]
    survey = Survey(model, reference_of(model, cases[0]), cases[:1])
    item = next(item for item in survey.fields if item.path == "hidden_size")
    base = survey.bases[0]
    row = survey.judged("hidden_size", {"hidden_size": size * base.json["num_attention_heads"]}, base)
    assert row.verdict == "refused" and "heads rotate in" in row.why and row.passes is not None
    assert row.changes in [one.changes for one in survey.of_field(item, base)]


EDGES = """
    import torch

    class Edges(torch.nn.Module):
        def __init__(self, width: int = 6, out: int = 4, extra: int | None = None, heads: int = 2, layers: int = 2):
            super().__init__()
            self.heads = heads
            self.proj = torch.nn.Linear(width, heads * (width // heads))
            self.out = torch.nn.Linear(heads * (width // heads), out or width)
            self.extra = torch.nn.Parameter(torch.zeros(5)) if extra is not None else None
            self.layers = torch.nn.ParameterList(torch.zeros(7 if layers == 1 else 6) for _ in range(layers))
            self.config = dict(width=width, out=out, extra=extra, heads=heads, layers=layers)

        def forward(self, x):
            return self.out(self.proj(x))
"""
EDGES_SPEC = """
language: 2
name: edges
reference: edges:Edges
sizes:
  D: {key: width, default: 6}
  O: {key: out, default: 4}
  E: {key: extra, optional: true}
  H: {key: heads, default: 2}
  L: {key: layers, default: 2}
streams: {text: [x]}
inputs: {x: {stream: text, width: D, layout: "b x c"}}
graph:
  - proj: {op: linear, from: x, width: D, to: h}
  - out: {op: linear, from: h, width: O, to: y}
  - extra: {op: parameter, shape: [5], when: E != null and E != 0, to: _}
  - layers: {repeat: L, graph: [{op: parameter, shape: [6], to: _}]}
outputs: [y]
"""


def test_small_and_odd_numbers_are_always_tried(tmp_path):
    """Zero that stands for null, one that is a special case, an odd width: whatever other numbers were built before."""
    (tmp_path / "edges.py").write_text(textwrap.dedent(EDGES))
    spec = tmp_path / "edges.yaml"
    spec.write_text(EDGES_SPEC)
    (tmp_path / "edges.cases.yaml").write_text("- config: {width: 12, out: 8, heads: 4, layers: 4}\n  batch: {text: [3]}\n")
    model = load(spec)
    found = census_by_class(model, 18)
    tried = {path: {row.changes[path] for row in found["edges:Edges"].rows if row.path == path} for path in ("width", "out", "layers", "heads", "extra")}
    small = {path: {0, 1, 2, 3} - {value for value in values if type(value) is int} for path, values in tried.items()}
    assert not any(small.values()), small
    guarded = document_of(model, found)["classes"]["edges:Edges"]["guarded"]
    assert guarded["out"]["least"] == 1 and guarded["layers"] == {"values": [0], "least": 2}
    assert guarded["extra"] == {"values": [None], "least": 1}


def test_edges_are_no_flags_and_no_texts():
    from symflops.verify.census.variations import edges

    assert edges(ConfigField("f", "int"), 6) == [0, 1, 2, 3, 7] and edges(ConfigField("f", "int"), 1) == [0, 2, 3]
    assert edges(ConfigField("f", "int | None"), None) == [0, 1, 2, 3] and edges(ConfigField("f", ""), None) == [0, 1, 2, 3]
    assert not edges(ConfigField("f", "bool"), True) and not edges(ConfigField("f", "str | None"), None) and not edges(ConfigField("f", "float"), 0.5)


def test_a_number_that_is_the_length_of_a_list_is_no_other():
    """Levels beside a longer list are built and are fewer: above those that differ, too."""
    known = guard([4, 7], [2, 1], {"related": [["long", "widths", 4]]})
    assert known == {"values": [], "related": [["long", "widths", 4]]}


def test_the_parts_of_a_config_that_may_be_of_any_model_are_those_of_its_default():
    import transformers

    paths = {item.path for item in fields_of(transformers.LlavaForConditionalGeneration)}
    assert {"text_config.hidden_act", "text_config.mlp_bias", "vision_config.hidden_act", "projector_hidden_act"} <= paths
    assert "text_config" not in paths


def test_fields_that_only_the_spec_reads_are_varied(tmp_path):
    """A class that looks up a field which its config does not declare has it, and one that a spec invents differs."""
    (tmp_path / "toy.py").write_text(textwrap.dedent(MODULE))
    spec = tmp_path / "toy.yaml"
    spec.write_text(SPEC.replace("  word:", "  E: {key: [invented, width], default: 4}\n  F: {key: made_up, default: 4}\n  word:"))
    model = load(spec)
    declared = ["width", "kind", "extra", "rate", "inner", "count"]
    read = read_fields(model.spec.sizes, declared)
    assert read == [ConfigField("made_up", "int")]
    assert further_fields([ConfigField(name) for name in declared], [{"width": 4}], read) == read
    qwen2 = shipped("qwen2")
    assert ConfigField("head_dim", "int") in read_fields(qwen2.spec.sizes, ["hidden_size", "num_attention_heads"])


def test_what_a_census_found_does_not_hide_it_when_it_is_taken_again(tmp_path):
    """The least value that a census tells of a size that others decide is no answer of the spec's own."""
    (tmp_path / "edges.py").write_text(textwrap.dedent(EDGES))
    spec = tmp_path / "edges.yaml"
    spec.write_text(EDGES_SPEC.replace("default: 4}", "default: D}", 1))
    (tmp_path / "edges.cases.yaml").write_text("- config: {width: 12, out: 8, heads: 4, layers: 4}\n  batch: {text: [3]}\n")
    texts = []
    for _ in range(2):
        model = load(spec)
        texts.append(text_of(document_of(model, census_by_class(model, 18))))
        census_path(spec).write_text(texts[-1])
    assert texts[0] == texts[1] and '"out": {"values": [null], "least": 1}' in texts[0]
    assert any("'out' would be below 1" in row.text for row in load(spec).program().requirements)


def test_of_what_a_spec_refuses_it_is_told_whether_the_class_runs(tmp_path):
    (tmp_path / "toy.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "toy.yaml").write_text(SPEC.replace("streams:", "requires: {even: D % 2 == 0}\nstreams:"))
    (tmp_path / "toy.cases.yaml").write_text(CASES)
    model = load(tmp_path / "toy.yaml")
    found = census_by_class(model, 18)
    refused = [row for row in found["toy:Toy"].rows if row.verdict == "refused"]
    assert refused and all(row.changes["width"] % 2 and row.passes is not None for row in refused)
    saved = figures_of(model, found, 18)["classes"]["toy:Toy"]["rows"]
    assert [row["passes"] for row in saved if row["config"].get("width", 0) % 2] == [row.passes for row in refused]


def test_no_census_is_taken_of_a_class_that_no_case_shows(tmp_path):
    (tmp_path / "toy.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "toy.yaml").write_text(SPEC.replace("2*D if word == 'gated' else D", "D + 1"))
    (tmp_path / "toy.cases.yaml").write_text(CASES)
    with pytest.raises(SymflopsError, match="none of the 1 cases of toy:Toy is exact"):
        census_by_class(load(tmp_path / "toy.yaml"), 18)


def test_words_are_open_only_where_each_base_accepts_an_unheard_one():
    def row(base, verdict):
        return Row(base, "norm", {"norm": UNHEARD}, verdict)

    assert open_to_words([row(0, "none"), row(1, "none")])
    assert not open_to_words([row(0, "none"), row(1, "unbuilt")]) and not open_to_words([])


def test_arguments_of_a_longer_batch_are_longer() -> None:
    """A case whose arguments stay as they are would hand the class other inputs than the batch says."""
    arguments = {"states": {"shape": [2, 1, 3, 24]}, "ids": {"value": [[3, 8]]}, "height": 8, "grid": [[1, 8]], "causal": True}
    case = LiveCase({"patch": 2}, {"latent": [[8, 12]], "text": [3]}, arguments=arguments)
    *_, last = fitting(case, {"patch": 2}, {"patch": 3})
    assert last.batch == {"latent": [[24, 36]], "text": [9]}
    assert last.arguments == {"states": {"shape": [2, 1, 9, 24]}, "ids": {"value": [[3, 8]]}, "height": 24, "grid": [[1, 24]], "causal": True}


@pytest.mark.parametrize(
    ("name", "path"),
    [("ViTModel", "head_dim"), ("JambaForCausalLM", "head_dim"), ("LongcatFlashForCausalLM", "router_bias"), ("Qwen2_5_VLForConditionalGeneration", "text_config.head_dim")],
)
def test_what_a_class_asks_a_config_for_is_varied(name: str, path: str) -> None:
    """``getattr(config, "head_dim", ...)``: no config class declares it, and it has an effect."""
    kind = getattr(transformers, name)
    found = [item.path for item in unlisted(kind)]
    assert path in found and not {item.path for item in fields_of(kind)} & set(found)


class AskingConfig(transformers.PretrainedConfig):
    """A config of somebody's own, one field of which another one sets."""

    width: int = 4

    @property
    def pairs(self) -> int:
        return self.width // 2

    @pairs.setter
    def pairs(self, value: int) -> None:
        self.width = 2 * value


class Asking(torch.nn.Module):
    """A class that asks for more than its config declares."""

    config_class = AskingConfig

    def __init__(self, config: AskingConfig) -> None:
        super().__init__()
        self.up = torch.nn.Linear(config.width, getattr(config, "inner_width", config.width), bias=hasattr(config, "biased"))


def test_what_somebodys_own_class_asks_for_is_varied() -> None:
    assert [item.path for item in unlisted(Asking)] == ["inner_width", "biased"]
    assert [item.path for item in settable(Asking)] == ["pairs"]


def test_an_argument_that_no_constructor_names_is_not_asked_for(toy):
    assert not list(unlisted(torch.nn.Linear))


@pytest.mark.parametrize(("spec", "named", "value"), [("vit", "ViTModel", 4), ("dinov2", "Dinov2Model", 12), ("jamba", "JambaForCausalLM", 6), ("bamba", "BambaForCausalLM", 4)])
def test_heads_of_a_width_that_no_config_declares(spec: str, named: str, value: int) -> None:
    """The class takes it from a config all the same."""
    kind = getattr(transformers, named)
    config = {**next(case.config for case in cases_of(shipped(spec).file)), "head_dim": value}
    with torch.device("meta"):
        real = kind(kind.config_class.from_dict(dict(config)))
    found = symflops.of_model(real)
    assert found.parameters == sum(parameter.numel() for parameter in real.parameters())
    assert found.parameters == shipped(spec).estimator({**config, "architectures": [named]}).parameters
