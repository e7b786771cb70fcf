"""What ``symflops check`` passes is derived, estimated and rendered for every config of the declared types."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, strategies as st

from symflops.api import Model
from symflops.cli.actions.check import findings
from symflops.compiler import Goal
from symflops.evaluate.batch import BatchError
from symflops.formula.table import ConfigError
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError
from tests.sampling import draws
from tests.support.plain import unplain

from .interpreter import run
from .specs import Case, _config, make_case, to_yaml

EXAMPLES = draws(8, 15, 1000, derandomize="CI" in os.environ, suppress_health_check=list(HealthCheck))
CONDITIONS = ("flag", "not flag", "other", "R1 > 1", "len(kinds) > 1", "0 in kinds", "word == 'a'", "word != 'b'", "many != null")
WIDTHS = ("D", "E", "F", "d", "D if flag else E", "D*len(kinds)", "sum(kinds)", "E if R1 > 2 else D", "D if word == 'a' else E")
COUNTS = ("R1", "kinds", "2", "len(kinds)", "R1*flag", "range(2)", "3 if flag else 2", "many if many != null else 1", "2 if word == 'c' else R1")
DEFAULTS = ("len(kinds)", "2 if flag else 3", "sum(kinds)", "kinds[0]", "D + R1", "D if word == 'a' else 2", "many if many != null else D")
SIZES: dict[str, Any] = {
    "D": {"key": "model_width", "default": 4}, "E": {"key": ["other_width", "alias_width"], "default": 4},
    "F": {"key": "nested.third_width", "default": 6}, "G": {"key": "num_kv_heads", "default": 2}, "R": {"key": "group_size", "default": 2},
    "d": {"key": "head_dim", "default": 2}, "R1": {"key": "num_layers", "default": 2}, "flag": {"key": "use_flag", "default": False},
    "other": {"key": "use_other", "default": False}, "kinds": {"key": "kinds", "type": "ints", "default": [1, 0]},
    "word": {"key": "word", "type": "text", "default": "'a'"}, "many": {"key": "many", "type": "int", "optional": True},
    "R2": {"key": "num_blocks", "default": "R1"}, "V": {"key": "vocab", "default": "3*D"},
}  # fmt: skip
FOUND = [(85, "width-mismatch"), (119, "absent-value")]


def entries_of(graph: list[dict[str, Any]]) -> list[tuple[list[dict[str, Any]], int, dict[str, Any]]]:
    """Each entry at every depth: the list that holds it, its place there, and its fields."""
    found = []
    for place, entry in enumerate(graph):
        for fields in entry.values():
            found += [(graph, place, fields), *entries_of(fields.get("graph", []))]
    return found


def changed(case: Case, rng: Random) -> dict[str, Any]:
    """The spec of a case with other conditions, widths, counts and defaults: most are wrong, and some for few configs only."""
    document = copy.deepcopy(case.document)
    document["sizes"] = copy.deepcopy(SIZES)
    if rng.random() < 0.5:
        document["sizes"][rng.choice(["R2", "V"])]["default"] = rng.choice(DEFAULTS)
    for _ in range(rng.randint(1, 4)):
        found = entries_of(document["graph"])
        if not found:
            break
        holder, place, fields = rng.choice(found)
        loops = [each for _, _, each in found if "repeat" in each and not isinstance(each["repeat"], dict)]
        widths = [each for _, _, each in found if "width" in each]
        kind = rng.randrange(5)
        if kind == 0:
            fields["when"] = rng.choice(CONDITIONS)
        elif kind == 1 and widths:
            rng.choice(widths)["width"] = rng.choice(WIDTHS)
        elif kind == 2 and loops:
            rng.choice(loops)["repeat"] = rng.choice(COUNTS)
        elif kind == 3 and len(holder) > 1:
            del holder[place]
        else:
            holder.insert(place, {"_": {"op": "push", "from": "ht", "stack": "s"}})
            holder.insert(place + rng.choice([1, 1, 2]), {"_": {"op": "pop", "stack": "s", "to": "popped"}})
    return document


def drawn_config(rng: Random) -> dict[str, Any]:
    """A config of the declared types; fields with defaults are sometimes left out."""
    config = _config(rng) | {
        "word": rng.choice("abcd"), "many": rng.choice([None, 0, 1, 3]), "use_other": rng.random() < 0.5,
        "kinds": [rng.randint(0, 3) for _ in range(rng.randint(1, 4))],
    }  # fmt: skip
    return {name: value for name, value in config.items() if rng.random() < 0.8}


def used(model: Model, config: dict[str, Any], batch: dict[str, Any], targets: tuple[str, ...]) -> tuple[int, int, int] | None:
    """Parameters and FLOPs of both passes after the page was rendered; None if the model refuses the config or the batch.

    An entry that a list of the config lacks is a refusal, too.
    """
    try:
        model.compiled(Goal.TEXTS, ["full"], ["symflops"], config, targets=targets)
        estimator = model.estimator(config)
        moments = estimator.moments(**batch)
        return estimator.parameters, estimator.forward(moments), estimator.backward(moments)
    except (ConfigError, BatchError) as error:
        assert not unplain(str(error)), error
        return None
    except SpecError as error:
        assert not unplain(str(error)), error
        if all(item.code == "bad-expression" and item.message.startswith("index ") for item in error.diagnostics):
            return None
        raise


def check(seed: int, budget: int, folder: Path) -> bool:
    """Whether a drawn spec passes the check; then some configs of it must be answered as the oracle does."""
    rng = Random(seed)
    case = make_case(seed, budget)
    document = changed(case, rng)
    (folder / "small.yaml").write_text(to_yaml(document), "utf-8")
    file = SpecFile(folder, folder / "small.yaml", "small.yaml")
    found = findings(file)
    told = "\n".join(finding.render() for finding in found)
    assert not unplain(told), told
    if any(finding.severity == "error" for finding in found):
        return False
    model = Model(file, read(Source("small.yaml", to_yaml(document)), lambda name: None))
    for config in ({}, *(drawn_config(rng) for _ in range(4))):
        told = f"\n{to_yaml(document)}\nconfig: {config}\nbatch: {case.batch}"
        try:
            got = used(model, config, case.batch, ("py",) if config else ("py", "md"))
        except Exception as error:
            raise AssertionError(f"{told}\n{error}") from error
        if got is None:
            continue
        try:
            want = run(document, config, case.batch)
        except (ValueError, KeyError):
            continue
        assert got == (want.parameters, want.forward, want.backward), told
    return True


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1), budget=st.integers(2, 6))
def test_what_the_check_passes_is_answered(tmp_path_factory: pytest.TempPathFactory, seed: int, budget: int) -> None:
    """Random specs with random faults: none that passes fails later."""
    check(seed, budget, tmp_path_factory.mktemp("spec"))


@pytest.mark.parametrize(("seed", "code"), FOUND)
def test_the_defaults_alone_are_fine(seed: int, code: str, tmp_path: Path) -> None:
    """Specs whose faults only configs have that differ from the defaults; found by chance."""
    document = changed(make_case(seed, 2 + seed % 8), Random(seed))
    (tmp_path / "small.yaml").write_text(to_yaml(document), "utf-8")
    file = SpecFile(tmp_path, tmp_path / "small.yaml", "small.yaml")
    Model(file, read(file.source(), lambda name: None)).estimator({})
    assert {finding.code for finding in findings(file) if finding.severity == "error"} == {code}


def test_some_drawn_specs_pass_and_some_fail(tmp_path: Path) -> None:
    """The test above draws both."""
    passed = [check(seed, 4, tmp_path) for seed in range(8)]
    assert 1 <= sum(passed) <= 7
