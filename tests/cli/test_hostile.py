"""Pipes, closed streams, control characters, very long words and very large batches: each ends, with an answer or a message."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import pytest

import symflops
from symflops.api import load
from symflops.cli.main import main
from symflops.evaluate.batch import BatchError
from symflops.formula.table import ConfigError, Formulas
from symflops.support import reading
from symflops.support.errors import SymflopsError, shown
from tests.sampling import sampled

BATCH = ["--batch", '{"text": [4]}']
LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
EVIL = "\x1b]0;title\x07\x1b[31m\x1b[2J\x9b5m\r\x08\u202eevil\u2028\ud800"
posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders")


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(reading, "PATIENCE", 0.1)
    os.mkfifo(tmp_path / "config.json")
    return tmp_path / "config.json"


@posix
@pytest.mark.parametrize(
    "words",
    [
        ["estimate", "--config", "PIPE", *BATCH],
        ["explain", "llama", "--config", "PIPE"],
        ["estimate", "llama", "--batch", "@PIPE"],
        ["estimate", "llama", "--convention", "PIPE.yaml", *BATCH],
        ["estimate", "llama", "--regime", "PIPE.yaml", *BATCH],
        ["draft", "torch.nn:Linear", "--config", "PIPE", "--inputs", "{}"],
    ],
)
def test_a_pipe_into_which_nobody_writes_is_told(words: list[str], pipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(f"{pipe}.yaml")
    assert main([word.replace("PIPE", str(pipe)) for word in words]) == 2
    assert "a pipe, and nothing came for 0.1 seconds" in capsys.readouterr().err


@posix
def test_a_pipe_is_read_to_its_end_and_one_that_stops_is_told(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PATIENCE", 2.0)
    text = json.dumps({**LLAMA, "long": "x" * 300_000})
    writer = threading.Thread(target=lambda: pipe.write_text(text))
    writer.start()
    assert reading.read_json(pipe) == json.loads(text)
    writer.join()
    file = os.open(pipe, os.O_RDWR)
    try:
        os.write(file, b'{"model_type": ')
        monkeypatch.setattr(reading, "PATIENCE", 0.1)
        with pytest.raises(SymflopsError, match="nothing came"):
            reading.read_json(pipe)
    finally:
        os.close(file)


@posix
def test_lines_are_read_from_a_pipe(pipe: Path) -> None:
    with pytest.raises(SymflopsError, match="nothing came"):
        list(reading.read_lines(pipe, 100))
    writer = threading.Thread(target=lambda: pipe.write_text("a\nb\n"))
    writer.start()
    assert list(reading.read_lines(pipe, 100)) == ["a\n", "b\n"]
    writer.join()


CLOSED = [["estimate", "llama", *BATCH], ["estimate", "nothing", *BATCH], ["list"], ["--help"], ["--version"], ["nothing"], ["check", "linear"], ["explain", "llama"]]


@pytest.mark.parametrize("words", CLOSED, ids=" ".join)
def test_a_closed_stream_changes_no_exit_code(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(words)
    capsys.readouterr()
    for closed in (["stdout"], ["stderr"], ["stdout", "stderr", "stdin"]):
        with monkeypatch.context() as patch:
            for name in closed:
                patch.setattr(sys, name, None)
            assert main(words) == code
            assert all(getattr(sys, name) is None for name in closed), "the streams are left as they were"
        assert "internal fault" not in capsys.readouterr().err


@posix
@pytest.mark.thorough
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_a_process_with_closed_streams_ends_with_its_code(closed: str) -> None:
    for word, code in (("llama", 0), ("nothing", 2)):
        command = f"{sys.executable} -m symflops.cli.main estimate {word} --batch '{{\"text\": [4]}}' {closed}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == code and "internal fault" not in done.stderr


def control(text: str) -> set[str]:
    """Characters that a terminal, or a reader's eye, obeys."""
    return {mark for mark in text if unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}


PLACES: dict[str, Any] = {
    "a value": {**LLAMA, "hidden_act": EVIL},
    "a value of a field that takes none": {**LLAMA, "hidden_size": EVIL},
    "a key": {**LLAMA, EVIL: 3},
    "a key of a config without a class": {"model_type": "llama", EVIL: 3},
    "a key inside": {"model_type": "llama", "inside": {EVIL: 3}},
    "a class": {"architectures": [EVIL]},
    "two classes": {"architectures": ["LlamaForCausalLM", EVIL]},
    "a model type": {"model_type": EVIL},
    "a pipeline": {"_class_name": EVIL},
    "a text for a list": {"architectures": EVIL},
}


@pytest.mark.parametrize("config", PLACES.values(), ids=PLACES)
def test_control_characters_of_a_config_are_shown(config: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["estimate", *BATCH], ["explain"], ["estimate", "llama", *BATCH], ["estimate", *BATCH, "--strict"]):
        main([*words, "--config", json.dumps(config)])
        out, err = capsys.readouterr()
        assert not control(out) | control(err)
        assert out or "evil" in err
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            symflops.estimate(config, {"text": [3]})
        except SymflopsError as error:
            assert not control(str(error)) and "evil" in str(error)
    assert not any(control(str(one.message)) for one in caught)


@pytest.mark.parametrize(
    "words",
    [
        ["estimate", EVIL, *BATCH],
        [EVIL],
        ["estimate", "llama", "--batch", json.dumps({EVIL: [3]})],
        ["estimate", "llama", "--batch", json.dumps({"text": [EVIL]})],
        ["estimate", "llama", "--batch", f"@{EVIL[:-1]}"],
        ["estimate", "llama", *BATCH, "--regime", EVIL],
        ["estimate", "llama", *BATCH, "--convention", EVIL],
        ["explain", "llama", "--assume", f"{EVIL}=3"],
        ["check", EVIL],
    ],
)
def test_control_characters_of_a_command_line_are_shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) in (1, 2)
    out, err = capsys.readouterr()
    assert not control(out) | control(err) and "evil" in err


def test_a_spec_is_shown_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text('language: 2\nname: mine\ntitle: "\\e[31mevil"\nsizes: {D: {key: "\\e[2Jevil", default: 4}}\nstreams: {text: [x]}\ninputs: {v: {stream: text, width: D}}\ngraph:\n  - up: {op: linear, from: nothing, width: D, to: v}\noutputs: [v]\n')
    assert main(["check", str(path)]) == 1 and main(["estimate", str(path), "--config", '{"a": 1}', *BATCH]) == 1
    out, err = capsys.readouterr()
    assert not control(out) | control(err)


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_a_terminal_gets_the_styles_of_a_command_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["explain", "llama", "--config", json.dumps({**LLAMA, EVIL: 3})]) == 0
    out, err = sys.stdout.getvalue(), sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[1m" in out and "\x1b[0m" in out and "evil" in out + err
    for text in (out, err):
        for style in ("0", "1", "2", "36"):
            text = text.replace(f"\x1b[{style}m", "")
        assert not control(text.replace("\r", "")), "progress may return to the beginning of a line"


LONG = "x" * 10_000_000


@pytest.mark.parametrize("config", [{**LLAMA, "hidden_act": LONG}, {**LLAMA, LONG: 3}, {"model_type": LONG}, {"model_type": "llama", LONG: 3}, {"architectures": [LONG]}, {**LLAMA, "hidden_size": [1] * 10**5}], ids=["value", "key", "type", "unread", "class", "list"])
def test_a_long_text_is_shown_in_part(config: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    for words in (["estimate", *BATCH], ["explain", "--top", "1"]):
        main([*words, "--config", str(path)])
        out, err = capsys.readouterr()
        assert len(out) + len(err) < 8_000
    try:
        symflops.estimate(config, {"text": [3]}, strict=True)
    except SymflopsError as error:
        assert len(str(error)) < 3_000


def test_the_end_of_a_long_message_stays() -> None:
    text = shown(f"the config's 'a' is '{LONG}', not a number: write 3\nanother line")
    assert len(text) < 1_500 and text.startswith("the config's 'a' is 'xxx") and text.endswith("not a number: write 3\nanother line")
    assert "characters) ..." in text


def test_equal_items_are_evaluated_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    calls = []
    plain = Formulas.checked
    monkeypatch.setattr(Formulas, "checked", lambda *args: calls.append(1) or plain(*args))
    few, many = [7, 9, 11], [7, 9, 11] * 50_000
    found = []
    for lengths in (few, many):
        calls.clear()
        assert main(["estimate", "llama", "--batch", json.dumps({"text": lengths}), "--json"]) == 0
        found.append((len(calls), json.loads(capsys.readouterr().out)))
    (one, small), (other, large) = found
    assert other <= one + 10, "the number of evaluations is that of the distinct items"
    assert large["total"] == 50_000 * small["total"] and large["tokens"] == sum(many)
    assert large["moments"] == {"n": len(many), "x": sum(many), "xx": sum(length**2 for length in many)}
    assert main(["explain", "llama", "--batch", json.dumps({"text": many}), "--top", "1"]) == 0
    assert len(capsys.readouterr().out) < 4_000


def test_a_batch_that_does_not_fit_names_the_item_itself() -> None:
    model = load("vit").estimator({"architectures": ["ViTModel"]})
    name = next(iter(model.streams))
    good = 3 if len(model.sets["samples"][0][1]) == 1 else [224, 224]
    with pytest.raises(BatchError, match="item 4 "):
        model.moments(**{name: [good, good, good, good, "x"]})
    with pytest.raises(BatchError, match="item 2 of 'text' has length 5, and is padded to 4"):
        load("llama").estimator({}).moments(text={"lengths": [5, 5, 5], "padded": [5, 6, 4]})


MISFITS = {
    "patch_size_t": ("cogvideox", {"patch_size_t": 0, "in_channels": 16}),
    "sr_ratios": ("segformer", {"sr_ratios": []}),
    "class_embeddings_concat": ("audioldm2_unet", {"class_embeddings_concat": True}),
    "block_out_channels": ("audioldm2_unet", {"block_out_channels": []}),
    "transformer_layers_per_block": ("audioldm2_unet", {"transformer_layers_per_block": [], "in_channels": 4}),
    "attention_head_dim": ("unet_2d_condition", {"attention_head_dim": 0}),
}
"""Fields of configs for which a shipped spec has no structure: a value that is absent, a list without entries, a division by 0."""


@pytest.mark.parametrize("key", sampled(list(MISFITS), 6, 1))
def test_a_config_without_a_structure_is_told_by_its_fields(key: str, capsys: pytest.CaptureFixture[str]) -> None:
    spec, config = MISFITS[key]
    with pytest.raises(ConfigError) as error:
        load(spec).estimator(config)
    assert f"the config's '{key}' is {config[key]!r}, with which '{spec}' has no structure" in str(error.value)
    assert ".yaml" not in str(error.value) and "\n" not in str(error.value)
    assert main(["explain", spec, "--config", json.dumps(config)]) == 2
    assert f"'{key}'" in (told := capsys.readouterr().err) and ".yaml" not in told


def test_the_author_of_a_spec_sees_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("language: 2\nname: mine\nsizes: {D: {key: d, default: 4}, k: {key: gated, default: false, type: bool}}\nstreams: {text: [x]}\ninputs: {v: {stream: text, width: D}}\ngraph:\n  - up: {op: linear, from: v, width: D, when: not k, to: w}\n  - down: {op: linear, from: w, width: D, to: v}\noutputs: [v]\n")
    assert main(["estimate", str(path), "--config", '{"gated": true}', *BATCH]) == 1
    assert "mine.yaml:8" in capsys.readouterr().err
