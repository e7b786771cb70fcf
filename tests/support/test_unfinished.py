"""What can be made of a spec with mistakes: everything else of it, and never a traceback."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from symflops.cli.actions.check import findings, load_valid_part
from symflops.read.spec_files import find_spec
from symflops.support.findings import SymflopsError
from tests.fuzz.mutators import mutate_alike, mutate_fields, mutate_lines
from tests.sampling import amount, sampled
from tests.support.cases import CASES, FOLDER, LARGE

LLAMA = (Path(__file__).resolve().parents[2] / "specs/language/llama.yaml").read_text("utf-8")


def paths(folder: Path, text: str) -> set[str]:
    """The parameters of what can be made of a spec."""
    (folder / "spec.yaml").write_text(text, "utf-8")
    model, _ = load_valid_part(find_spec(folder / "spec.yaml"))
    return {str(parameter.path) for operator in model.graph({}).operators() for parameter in operator.parameters}


@pytest.mark.parametrize("case", sampled([case for case in CASES if case not in LARGE], 4, 1))
def test_what_is_left_of_a_spec_with_a_mistake_derives(case):
    with contextlib.suppress(SymflopsError):
        model, found = load_valid_part(find_spec(FOLDER / case / "spec.yaml"))
        assert model.partial == bool(found)
        model.program(["full", "forward"], ["torch"], {})


def test_an_entry_that_is_wrong_takes_only_what_rests_on_it_along(tmp_path):
    whole = paths(tmp_path, LLAMA)
    assert paths(tmp_path, LLAMA.replace("op: rms_norm, from: h, to: m", "op: rms_nrom, from: h, to: m")) == {path for path in whole if "post_attention" not in path and ".mlp." not in path}
    assert paths(tmp_path, LLAMA.replace("to: k}", "to: k, widht: 3}")) == {path for path in whole if "k_proj" not in path and "o_proj" not in path}
    assert paths(tmp_path, LLAMA.replace("outputs: [logits]\n", "")) == whole
    assert paths(tmp_path, LLAMA.replace("outputs: [logits]\n", "outputs: [logit]\n")) == whole


LINES = [number for number, line in enumerate(LLAMA.split("\n")) if line.startswith("        - ")]


@pytest.mark.parametrize("number", sampled(LINES, 3, 1))
@pytest.mark.parametrize("change", [("op:", "opp:"), ("from: ", "from: no"), ("query: ", "query: no"), ("width: ", "width: no"), ("to: ", "too: "), ("D", "2*D")], ids=lambda change: change[0])
def test_a_mistake_in_an_entry_of_a_real_spec_hides_no_other_and_makes_none(tmp_path, number, change):
    """One mistake in a line: all findings are about that line, or about the width that it changed; the rest still derives."""
    lines = LLAMA.split("\n")
    changed = lines[number].replace(*change, 1)
    if changed == lines[number]:
        return
    lines[number] = changed
    (tmp_path / "spec.yaml").write_text("\n".join(lines), "utf-8")
    file = find_spec(tmp_path / "spec.yaml")
    errors = [finding for finding in findings(file) if finding.severity == "error"]
    for finding in errors:
        touched = {finding.span.line, *(label.span.line for label in finding.also)} if finding.span else set()
        consequence = finding.code in ("unknown-value", "absent-value", "unused-value") and change[0] == "to: "
        assert number + 1 in touched or consequence or change[0] == "D", finding.render()
    model, _ = load_valid_part(file)
    model.program(["full", "forward"], ["torch"], {})


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(amount(8, 60, 20)))
def test_whatever_is_wrong_the_rest_derives_or_is_refused(tmp_path, seed):
    """Lines and words of a spec swapped, doubled and dropped: findings are told, and what is left derives."""
    rng = random.Random(seed)
    name = rng.choice(("llama", "mixtral", "dit", "deepseek_v32", "whisper"))
    text = find_spec(name).path.read_text("utf-8")
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice((mutate_lines, mutate_fields, mutate_alike))(text, rng)
    (tmp_path / f"{name}.yaml").write_text(text, "utf-8")
    file = find_spec(tmp_path / f"{name}.yaml")
    assert all(finding.render() for finding in findings(file))
    with contextlib.suppress(SymflopsError):
        load_valid_part(file)[0].program(["full", "forward"], ["torch"], {})
