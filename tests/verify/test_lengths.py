"""Which lengths a class takes: it fails on a batch exactly if its spec refuses the batch.

The witness is the real class, on the CPU, at 0, 1, 2, odd lengths, and around every number of its config.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symflops.api import Model, load
from symflops.cli.main import main
from symflops.read.spec_files import chosen_specs, find_spec
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.census.lengths import LengthCensus, batches_of, lengths_of_interest, resized
from symflops.verify.census.take import quiet
from tests.sampling import sampled
from tests.verify.arguments import further

BY_ACCIDENT = {
    "allegro": "odd sides of two items are reshaped into other items", "controlnet": "one row is repeated",
    "dit": "patches are reshaped into other images", "ltx_video": "an empty latent runs, and one token is repeated for each timestep",
    "ltx2_video": "as ltx_video, and an empty stream of audio runs", "mochi": "as allegro",
    "siglip_vision": "the embedding of one patch is repeated for each place",
}  # fmt: skip
"""Specs that refuse batches on which the class runs and computes something else, with what that is."""
ONE_VALUE = "Expected more than 1 value per channel"
"""The error of a group norm whose groups are one value each, as in a batch of one image of one pixel; two images run."""

NAMES = sorted(str(file.name) for file in chosen_specs([]) if file.path.parent.name not in ("nn", "assumed", "blocks", "papers") and cases_of(file))
CASES = [(name, place) for name in NAMES for place in range(len(cases_of(find_spec(name))))]


def disagreements(model: Model, case: LiveCase) -> list[str]:
    """What class and spec disagree about, but for batches that are excused."""
    name = str(model.file.name)
    with quiet():
        rows = list(LengthCensus(model, case, further(name, case)).rows())
    assert rows[0].agrees and not rows[0].failed, rows[0]
    found = [row for row in rows if not row.agrees and (row.failed or name not in BY_ACCIDENT)]
    return [f"{row.batch}: {row}" for row in found if ONE_VALUE not in row.failed]


@pytest.mark.parametrize(("name", "place"), sampled(CASES, 45, 14))
def test_a_spec_refuses_what_its_class_does(name: str, place: int) -> None:
    assert not disagreements(load(name), cases_of(find_spec(name))[place])


def test_a_batch_without_arguments_is_left_out() -> None:
    case = cases_of(find_spec("gpt2"))[0]
    rows = list(LengthCensus(load("gpt2"), case, lambda batch: {} if batch["text"][0] % 2 else None).rows())
    assert {row.batch["text"][0] for row in rows} >= {1, 3, 63, 65} and all(row.batch["text"][0] % 2 for row in rows)


def changed(tmp_path: Path, name: str, old: str, new: str) -> Model:
    text = find_spec(name).path.read_text("utf-8")
    assert text.count(old) == 1
    path = tmp_path / f"{name}.yaml"
    path.write_text(text.replace(old, new), "utf-8")
    return load(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("x <= P", "x <= P + 1", "the class fails: IndexError"), ("x <= P", "x < P", "the class runs, and the spec says: item 0 of 'text' has length 64"),
        ("longest(x) >= 1", "longest(x) >= 0", "the class fails: RuntimeError"), ("longest(x) >= 1", "longest(x) >= 2", "the class takes at least 1 token"),
    ],
)  # fmt: skip
def test_a_condition_that_is_off_by_one_is_found(tmp_path: Path, old: str, new: str, words: str) -> None:
    found = disagreements(changed(tmp_path, "gpt2", old, new), cases_of(find_spec("gpt2"))[0])
    assert len(found) == 1 and words in found[0]


def test_the_command_prints_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = changed(tmp_path, "gpt2", "x <= P", "x <= P + 1")
    cases = find_spec("gpt2").path.with_name("gpt2.cases.yaml").read_text("utf-8")
    (tmp_path / "gpt2.cases.yaml").write_text(cases, "utf-8")
    assert main(["census", str(model.file.path), "--lengths"]) == 1
    out, err = capsys.readouterr()
    assert "gpt2.cases.yaml:1" in out and "the class fails: IndexError" in out and "2 that only one of class and spec takes" in err


def test_what_is_tried() -> None:
    config = {"max_position_embeddings": 64, "layers": [{"kernel": 7}], "big": 10**9, "flag": True}
    lengths = lengths_of_interest(config)
    assert {0, 1, 2, 3, 6, 7, 8, 63, 64, 65, 127, 128, 129} <= set(lengths) and max(lengths) == 129
    tried = list(batches_of({"text": [9, 9], "images": [[4, 6]], "sample": 1}, [5]))
    assert tried == [
        {"text": [9, 9], "images": [[4, 6]], "sample": 1}, {"text": [5, 5], "images": [[4, 6]], "sample": 1},
        {"text": [9, 9], "images": [[5, 6]], "sample": 1}, {"text": [9, 9], "images": [[4, 5]], "sample": 1},
        {"text": [9, 9], "images": [[5, 5]], "sample": 1},
    ]  # fmt: skip
    both = [batch for batch in batches_of({"text": [4], "images": [[4, 6]], "time": [4]}, [5]) if batch["text"] == [5]]
    assert both == [
        {"text": [5], "images": [[4, 6]], "time": [4]}, {"text": [5], "images": [[5, 6]], "time": [4]}, {"text": [5], "images": [[4, 6]], "time": [5]},
    ]  # fmt: skip
    arguments: dict[str, Any] = {"mask": {"shape": [2, 9, 9]}, "ids": {"value": [[1, 2, 3]]}, "n": 9}
    assert resized(arguments, {9: 5, 3: 5}) == {"mask": {"shape": [2, 5, 9]}, "ids": {"value": [[1, 1, 1, 2, 3]]}, "n": 5}
