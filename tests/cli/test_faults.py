"""What goes wrong beside the work: faults of symflops itself, outputs that cannot be written, locales without UTF-8."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from symflops.cli import list as command
from symflops.cli.main import main
from tests.sampling import sampled

ROOT = Path(__file__).resolve().parents[2]


def symflops(*words: str, **more) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more.pop("env", {})}
    options = {"cwd": ROOT, "timeout": 120, "check": False, **more}
    return subprocess.run([sys.executable, "-m", "symflops.cli.main", *words], env=environment, **options)


def test_a_fault_is_one_line_that_asks_for_a_report(monkeypatch, capsys):
    monkeypatch.setattr(command, "run", lambda args: 1 // 0)
    assert main(["list"]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "please report" in err and "ZeroDivisionError" in err and "--traceback" in err
    with pytest.raises(ZeroDivisionError):
        main(["list", "--traceback"])


FILES = {
    "model_index.json": '{"_class_name": "X", "transformer": ["diffusers", ["a"]]}',
    "deep.json": '{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": %s}' % ("[" * 600 + "]" * 600),
    "twice.json": '{"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "hidden_size": 128}',
    "role.yaml": 'name: x\nroles: {"": no}\n',
    "view.yaml": "language: 2\nname: v\nsizes: {D: width}\nstreams: {t: [x]}\ninputs: {t: {stream: t, width: D}}\n"
    "graph:\n  - a: {op: reshape, from: t, axes: width of it, to: u}\noutputs: [u]\n",
    "large.csv": "aic_cube_fops\n1e999999999\n", "open.csv": 'aic_cube_fops\n"12\n34\n', "nan.csv": "aic_cube_fops\nInfinity\n",
    "object/llama.json": "{}", "numbers/verl.json": "[1]", "records/a.json": '[{"id": "a", "class": "LlamaForCausalLM"}]',
    "listed/a.json": '[{"id": "a", "class": ["LlamaForCausalLM"]}]',
}  # fmt: skip
BATCH = ("--batch", '{"text": [5]}')
MFU = ("--seconds", "1", "--peak", "100")
WRONG = [
    (("estimate", "--config", "model_index.json", *BATCH), 2, "no spec describes"),
    (("estimate", "--config", "deep.json", *BATCH), 2, "nests deeper"),
    (("estimate", "--config", "twice.json", *BATCH), 2, "stands twice"),
    (("estimate", "--config", "/dev/zero", *BATCH), 2, "larger than"),
    (("estimate", "llama", "--batch", "[" * 9999), 2, "nests deeper"),
    (("estimate", "llama", *BATCH, "--convention", "role.yaml"), 1, "unknown-role"),
    (("check", "view.yaml"), 1, "no axis with a length"),
    (("check", "/dev/zero"), 2, "dev/zero"),
    (("mfu", "--kernel-details", "large.csv", *MFU), 2, "not a table of numbers"),
    (("mfu", "--kernel-details", "open.csv", *MFU), 2, "not a table of numbers"),
    (("mfu", "--kernel-details", "nan.csv", *MFU), 2, "not a table of numbers"),
    (("mfu", "--flops", "1e15", "--seconds", "1e-320", "--peak", "100"), 2, "more than a number can hold"),
    (("conform", "--peers", "object"), 2, "not a list of records"),
    (("conform", "--peers", "numbers"), 2, "not a list of records"),
    (("verify", "--records", "records"), 2, "record 1 has no valid"),
    (("verify", "--records", "listed"), 2, "record 1 has no valid"),
]


@pytest.mark.parametrize(("words", "code", "told"), WRONG, ids=[" ".join(words)[:40] for words, _, _ in WRONG])
def test_what_is_wrong_in_a_file_is_a_message(words, code, told, tmp_path, monkeypatch, capsys):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(list(words)) == code
    out, err = capsys.readouterr()
    assert told in out + err and "internal fault" not in err and "Traceback" not in err


@pytest.mark.parametrize("words", [("list",), ("explain", "llama")])
def test_a_full_device_is_a_message(words):
    with Path("/dev/full").open("w") as full:
        done = symflops(*words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "No space left" in done.stderr


def no_room() -> None:
    """Every write to a file fails from now on, as on a disk that is full: of the cache, of the temporary and the current folder."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


LINEAR = {
    "specs/nn/mine.yaml": "language: 2\nname: mine\ntitle: Mine\nsizes: {D: {key: width, default: 4}}\nstreams: {text: [x]}\ninputs:\n  x: {stream: text, width: D}\n"
    "graph:\n  - a: {op: linear, from: x, width: D, to: y}\noutputs: [y]\n",
    "config.json": '{"in_features": 3, "out_features": 4}', "inputs.json": '{"input": {"shape": [2, 3], "dtype": "float32"}}',
}  # fmt: skip


@pytest.mark.parametrize(("words", "notes"), sampled([
    (("estimate", "mine", *BATCH, "--json"), 1), (("estimate", "llama", *BATCH, "--json", "--regime", "full:freeze=lm_head.*"), 1),
    (("explain", "mine"), 0), (("compare", "mine", "--regimes", "full,forward"), 0), (("list",), 0), (("check",), 1), (("render", "mine", "--format", "latex"), 0),
], 4, 1), ids=lambda given: "-".join(map(str, given))[:20] if isinstance(given, tuple) else "")  # fmt: skip
def test_a_full_disk_keeps_no_answer_back(tmp_path, words, notes):
    for name, text in LINEAR.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    done = symflops(*words, env=env, cwd=tmp_path, preexec_fn=no_room, capture_output=True, text=True)
    told = [line for line in done.stderr.splitlines() if "all sizes are the defaults" not in line]
    assert done.returncode == 0 and len(told) <= notes, done.stderr
    assert done.stdout or words[0] == "check"
    assert ("not kept (File too large)" in done.stderr) == (words[0] == "estimate")


@pytest.mark.parametrize("words", sampled([
    ["generate"], ["new", "thing"], ["schema", "spec", "-o", "schema.json"], ["render", "mine", "--format", "latex", "-o", "."],
    ["render", "mine", "--format", "html", "-o", "."], ["site", "mine", "-o", "site"],
    ["draft", "torch.nn:Linear", "--config", "config.json", "--inputs", "inputs.json", "-o", "drafted.yaml"],
], 7, 3), ids=lambda words: "-".join(words)[:24])  # fmt: skip
def test_what_a_full_disk_cannot_take_is_one_line(tmp_path, words):
    for name, text in LINEAR.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    done = symflops(*words, env=env, cwd=tmp_path, preexec_fn=no_room, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr
    reasons = (": File too large", *(["No usable temporary directory"] if words[0] == "draft" else []))
    assert last.startswith(f"symflops {words[0]}: ") and any(reason in last for reason in reasons), done.stderr
    assert {path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size} == before, "nothing is torn"


@pytest.mark.thorough
@pytest.mark.parametrize("words", [("render", "llama", "--format", "markdown")])
def test_a_locale_without_utf_8_says_the_same(words):
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    found, expected = (symflops(*words, env=env, capture_output=True) for env in (plain, {"PYTHONUTF8": "1"}))
    assert (found.returncode, found.stderr) == (0, b"") and found.stdout == expected.stdout
