"""The command line as people and scripts use it: output, exit codes, JSON, what is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from symflops.api import load
from symflops.cli.main import main
from symflops.verify import verdicts

ROOT = Path(__file__).resolve().parents[2]
BATCH = '{"latent": [4096], "prompt": [256]}'


@pytest.fixture
def run(capsys):
    def call(*words: str) -> tuple[int, str, str]:
        try:
            code = main(words)
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_estimate_json_is_one_object_with_the_agreed_keys(run):
    code, out, err = run("estimate", "qwen_image", "--batch", BATCH, "--convention", "torch", "--json")
    found = json.loads(out)
    assert code == 0 and err == ""
    assert list(found) == [
        "schema", "spec", "variant", "convention", "regime", "unit", "parameters", "parameters_active", "trainable_parameters",
        "forward", "backward", "recomputed", "total", "tokens", "flops_per_token", "moments", "notes", "evidence",
    ]  # fmt: skip
    assert found["schema"] == 1
    assert (found["parameters"], found["forward"], found["backward"]) == (20430401088, 73128218198016, 146167851122688)
    assert found["total"] == found["forward"] + found["backward"]
    assert found["moments"] == {"n": 1, "x": 4096, "y": 256, "xx": 4096**2, "xy": 4096 * 256, "yy": 256**2}


def test_macs_are_half_of_flops(run):
    flops, macs = (json.loads(run("estimate", "llama", "--batch", '{"text": [7]}', "--json", "--unit", unit)[1]) for unit in ("flops", "macs"))
    assert macs["unit"] == "macs"
    assert all(2 * macs[key] == flops[key] for key in ("forward", "backward", "total"))


def test_a_batch_can_come_from_a_file(run, tmp_path):
    path = tmp_path / "batch.json"
    path.write_text('{"text": [4, 4]}')
    direct = run("estimate", "llama", "--batch", '{"text": [4, 4]}', "--json")
    assert run("estimate", "llama", "--batch", f"@{path}", "--json") == direct


def test_padded_lengths_count_where_the_convention_executes_them(run):
    def forward(batch: dict, convention: str) -> int:
        return json.loads(run("estimate", "llama", "--batch", json.dumps(batch), "--convention", convention, "--json")[1])["forward"]

    both = {"text": {"lengths": [5, 3], "padded": [8, 8]}}
    assert forward(both, "symflops") == forward({"text": [5, 3]}, "symflops")
    assert forward(both, "torch") == forward({"text": [8, 8]}, "torch")


def config(folder: Path, **fields: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


SMALL = {"hidden_size": 96, "intermediate_size": 208, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "vocab_size": 131}


@pytest.mark.parametrize("sign", [{"architectures": ["LlamaForCausalLM"]}, {"model_type": "llama"}])
def test_the_spec_is_found_from_a_config(run, tmp_path, sign):
    folder = config(tmp_path / "model", **SMALL, head_dim=24, **sign)
    for path in (folder, folder / "config.json"):
        code, out, _ = run("estimate", "--config", str(path), "--batch", '{"text": [33, 33, 33]}', "--json", "--convention", "torch")
        assert code == 0 and json.loads(out)["forward"] == 65615616


def test_the_spec_is_found_from_a_pipeline(run, tmp_path):
    config(tmp_path / "p/transformer", _class_name="QwenImageTransformer2DModel", num_layers=2)
    index = {"_class_name": "QwenImagePipeline", "vae": ["diffusers", "X"], "transformer": ["diffusers", "QwenImageTransformer2DModel"]}
    (tmp_path / "p/model_index.json").write_text(json.dumps(index))
    code, out, _ = run("estimate", "--config", str(tmp_path / "p"), "--batch", BATCH, "--json")
    assert code == 0 and json.loads(out)["spec"] == "qwen_image"
    assert json.loads(out)["parameters"] < 10**9


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("estimate", "lama", "--batch", "{}"), "llama"),
        (("estimate", "llama", "--batch", '{"txt": [1]}'), "did you mean 'text'"),
        (("estimate", "llama", "--batch", "{}"), "lacks the stream 'text'"),
        (("estimate", "llama", "--batch", '"x"'), "maps streams to lists"),
        (("estimate", "llama", "--batch", "{"), "not JSON"),
        (("estimate", "llama", "--batch", '{"text": [-1]}'), "whole number"),
        (("estimate", "llama", "--batch", '{"text": [1.5]}'), "whole number"),
        (("estimate", "llama", "--batch", '{"text": [true]}'), "whole number"),
        (("estimate", "llama", "--batch", '{"text": "abc"}'), "whole number"),
        (("estimate", "qwen_image", "--batch", '{"latent": [1, 2], "prompt": [1]}'), "items"),
        (("estimate", "llama", "--batch", '{"text": [1]}', "--regime", "ful"), "did you mean 'full'"),
        (("estimate", "llama", "--batch", '{"text": [1]}', "--convention", "palmm"), "convention"),
        (("estimate", "--batch", '{"text": [1]}'), "which model"),
        (("estimate", "--config", "/nowhere/config.json", "--batch", "{}"), "No such file"),
        (("nonsense",), "no command 'nonsense'"),
        (("explan", "llama"), "did you mean 'explain'"),
        (("graph", "llamas"), "did you mean 'llama'"),
        (("verify", "--records", "/nowhere"), "no folder"),
    ],
)
def test_what_a_user_did_wrong_is_a_message_and_2(run, words, told):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert told in err and "Traceback" not in err


def test_an_unknown_model_is_named_and_never_costs_nothing(run, tmp_path):
    folder = config(tmp_path / "m", architectures=["LlamaForCausalLLM"], model_type="llamma")
    code, out, err = run("estimate", "--config", str(folder), "--batch", '{"text": [1]}', "--json")
    assert (code, out) == (2, "")
    assert "LlamaForCausalLLM" in err and "LlamaForCausalLM" in err


@pytest.mark.parametrize("fields", [{"hidden_size": "wide"}, {"hidden_size": -1}, {"hidden_size": 2.5}, {"tie_word_embeddings": 3}, {"vocab_size": 10**30}])
def test_a_config_of_the_wrong_type_is_refused(run, tmp_path, fields):
    folder = config(tmp_path / "m", architectures=["LlamaForCausalLM"], **fields)
    code, out, err = run("estimate", "--config", str(folder), "--batch", '{"text": [1]}', "--json")
    assert (code, out) == (2, "") and next(iter(fields)) in err


def test_estimate_imports_neither_sympy_nor_yaml():
    text = (
        "import sys\nfrom symflops.cli.main import main\n"
        "main(['estimate', 'qwen_image', '--batch', '{\"latent\": [1], \"prompt\": [1]}'])\n"
        "print([name for name in ('sympy', 'networkx', 'jinja2', 'ruamel.yaml', 'numpy', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_help_imports_next_to_nothing():
    text = "import sys\nfrom symflops.cli.main import main\nmain(['--help'])\nprint(len([n for n in sys.modules if n.startswith('symflops')]), 'argparse' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "4 False"


def test_explain_shows_units_shares_and_the_closed_form(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = run("explain", "qwen_image", "--batch", BATCH)
    assert code == 0
    assert "module (in FLOPs)" in out and "100.00 % ####################" in out
    assert "transformer_blocks.*" in out and "to_add_out" in out
    assert "(24*L*D**2 + 2*D*(o*p**2 + c)) * x" in out
    shallow = run("explain", "qwen_image", "--depth", "1")[1]
    assert "to_add_out" not in shallow and "transformer_blocks.*" in shallow


def test_graph_draws_mermaid_and_dot(run):
    code, mermaid, _ = run("graph", "qwen_image")
    assert code == 0 and mermaid.startswith("flowchart TD") and "subgraph" in mermaid and mermaid.count("subgraph") == mermaid.count("\n  end")
    code, dot, _ = run("graph", "llama", "--format", "dot")
    assert code == 0 and dot.startswith('digraph "llama" {') and dot.count("{") == dot.count("}")


def test_list_names_specs_and_streams(run):
    code, out, _ = run("list")
    assert code == 0 and "qwen_image" in out and "latent[x]" in out
    found = json.loads(run("list", "--json")[1])
    assert found["schema"] == 1 and found["specs"]["llama"]["streams"] == {"text": ["x"]}


def test_check_shows_every_mistake_of_a_file(run, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(
        "language: 2\nname: bad\nsizes: {D: {key: d}}\nstreams: {text: [x]}\ninputs: {v: {stream: txt, width: D}, w: {stream: text, width: D}}\n"
        "graph:\n  - a: {op: linear, from: w, width: DD}\n  - b: {op: lineer, from: w, width: D}\n  - c: {op: linear, form: w, width: D}\noutputs: [z]\n"
    )
    code, out, err = run("check", str(path))
    assert (code, out) == (1, "")
    assert err.count("error[") >= 2 and "unknown-operator" in err and "did you mean 'linear'" in err and "unknown-field" in err
    fixed = path.read_text().replace("lineer", "linear").replace("form: w", "from: w")
    path.write_text(fixed)
    code, _, err = run("check", str(path))
    assert code == 1
    assert all(kind in err for kind in ("unknown-stream", "unknown-size", "unknown-value"))


def test_verify_records_prints_the_agreed_list(run):
    code, out, err = run("verify", "--records", str(ROOT / "tests/data/truth"), "--json", "llama", "qwen_image")
    found = json.loads(out)
    assert code == 0 and len(found) == 9
    for verdict in found:
        assert list(verdict) == ["id", "status", "parameters_ok", "forward_ok", "backward_ok", "modules_ok", "expected", "derived"]
        assert verdict["status"] == "exact" and all(verdict[f"{flag}_ok"] for flag in ("parameters", "forward", "backward", "modules"))
        assert verdict["expected"] == verdict["derived"] and set(verdict["expected"]) == {"parameters", "forward", "backward"}


def test_records_that_were_verified_are_not_derived_again(run, tmp_path, monkeypatch):
    library, record = tmp_path / "specs/language", json.loads((ROOT / "tests/data/truth/LlamaForCausalLM.json").read_text())[0]
    library.mkdir(parents=True)
    for name in ("llama.yaml", "llama.census.json", "llama.reading.json"):
        (library / name).write_bytes((ROOT / "specs/language" / name).read_bytes())
    (tmp_path / "records").mkdir()
    (tmp_path / "records/r.json").write_text(json.dumps([record]))
    monkeypatch.chdir(tmp_path)
    derived = []
    real = verdicts.verify_record
    monkeypatch.setattr(verdicts, "verify_record", lambda *given: derived.append(1) or real(*given))
    monkeypatch.setattr(verdicts, "load", lambda file: derived.append(0) or load(file))
    first = run("verify", "--records", "records", "--json")
    assert derived == [0, 1] and first[0] == 0
    assert run("verify", "--records", "records", "--json") == first and derived == [0, 1]
    run("verify", "--records", "records", "--cold")
    assert derived == [0, 1] * 2
    record["fwd_flops"] += 2
    (tmp_path / "records/r.json").write_text(json.dumps([record]))
    assert run("verify", "--records", "records")[0] == 1 and derived == [0, 1] * 3
    run("verify", "--records", "records")
    assert derived == [0, 1] * 3
    (library / "llama.yaml").write_text((library / "llama.yaml").read_text() + "# another\n")
    run("verify", "--records", "records")
    assert derived == [0, 1] * 4


@pytest.mark.thorough
def test_a_wrong_record_is_a_mismatch_and_an_unknown_class_no_spec(run, tmp_path):
    records = json.loads((ROOT / "tests/data/truth/LlamaForCausalLM.json").read_text())
    wrong, strange, broken = ({**records[0]} for _ in range(3))
    wrong["bwd_flops"] += 2
    strange["class"] = "NobodyForNothing"
    broken["config_json"] = {**records[0]["config_json"], "hidden_size": None, "vocab_size": "many"}
    (tmp_path / "r.json").write_text(json.dumps([records[0], wrong, strange, broken]))
    code, out, err = run("verify", "--records", str(tmp_path), "--json")
    assert code == 1
    assert [verdict["status"] for verdict in json.loads(out)] == ["exact", "mismatch", "no-spec", "error"]
    assert not json.loads(out)[1]["backward_ok"] and json.loads(out)[1]["forward_ok"]
    (tmp_path / "r.json").write_text(json.dumps([records[0], strange]))
    assert run("verify", "--records", str(tmp_path))[0] == 0
    assert run("verify", "--records", str(tmp_path), "--strict")[0] == 1
