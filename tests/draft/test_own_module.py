"""One command drafts a user's own module, in a plain file, exactly."""

import json
import math
from pathlib import Path

import pytest

from symflops.api import load
from symflops.cli.main import main

MODULE = Path(__file__).parent / "own_model.py"
CONFIG = {"words": 61, "width": 24, "heads": 4, "key_heads": 2, "hidden": 40, "depth": 2, "features": 10}
INPUTS = {"tokens": {"shape": [2, 9], "dtype": "int64"}, "picture": {"shape": [2, 5, 10], "dtype": "float32"}}


@pytest.fixture(scope="module")
def drafted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("draft")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "inputs.json").write_text(json.dumps(INPUTS))
    return folder


def draft(folder, capsys, *further):
    code = main(
        [
            "draft",
            f"{MODULE}:TinyModel",
            "--config",
            str(folder / "config.json"),
            "--inputs",
            str(folder / "inputs.json"),
            "--timeout",
            "600",
            *further,
        ]
    )
    return code, capsys.readouterr()


@pytest.mark.thorough
@pytest.mark.thorough
def test_it_is_exact_and_reads_back(drafted, capsys):
    spec = drafted / "tiny.yaml"
    code, printed = draft(drafted, capsys, "--json", "-o", str(spec))
    report = json.loads(printed.out)
    assert code == 0, report
    assert report["schema"] == 1
    assert report["exact"]
    assert not report["stuck"]
    assert not report["unsolved"]
    assert len(report["proofs"]) >= 5
    assert all(proof["exact"] and proof["checks"] >= (9 if proof["kind"] == "drawn" else 4) for proof in report["proofs"])
    assert {"words", "width", "heads", "key_heads", "hidden", "depth"} <= set(report["varied"])
    text = spec.read_text("utf-8")
    assert "repeat:" in text
    assert "op: attention" in text
    assert len(text.splitlines()) <= 50
    # an independent count by hand at sizes that no sample had
    words, width, heads, groups, hidden, depth, features, x, y, items = 1009, 96, 6, 3, 500, 11, 7, 33, 17, 3
    config = {
        "words": words,
        "width": width,
        "heads": heads,
        "key_heads": groups,
        "hidden": hidden,
        "depth": depth,
        "features": features,
    }
    tokens = x + y
    layer = tokens * width * (2 * width + 2 * groups * (width // heads) + 2 * hidden) + 2 * tokens * tokens * width
    forward = 2 * items * (y * features * width + depth * layer + x * width * words)
    model = load(spec)
    estimator = model.estimator(config, "full", "torch")
    streams = {stream.name: stream for stream in estimator.program.streams if stream.variables}
    batch = {name: [x if "text" in name else y] * items for name in streams}
    assert estimator.forward(estimator.moments(**batch)) == forward
    own = width * words + features * width + width + 2 * width
    block = (
        4 * width
        + width
        + 2 * width * width
        + 2 * width * groups * (width // heads)
        + width
        + 2 * width * hidden
        + hidden
        + width
    )
    assert estimator.parameters == own + depth * block
    assert math.prod([len(streams)]) == 2


def test_a_module_that_is_not_there_is_a_message(capsys):
    assert main(["draft", f"{MODULE}:TinyModl"]) == 2
    assert "TinyModel" in capsys.readouterr().err
    assert main(["draft", "nowhere_at_all:Thing"]) == 2
    assert "nowhere_at_all" in capsys.readouterr().err
    assert main(["draft", "Thing"]) == 2
    assert "package.module:Class" in capsys.readouterr().err
