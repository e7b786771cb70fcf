"""``sum(... for ... in ...)``: closed over a list of the config, printed in all languages, and equal to Python's own sum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from symflops.api import load
from symflops.read.read import read
from symflops.support.findings import Source, SpecError
from tests.oracle.interpreter import run
from tests.oracle.package import closed_form, generated, interpreted, program_of, symbolic
from tests.oracle.specs import Case, to_yaml
from tests.sampling import amount

ITEMS = ("sides", "range(L)", "range(1, L)", "range(L, 2*L + 1)", "[1, D, L]", "sides + [2]", "range(4)", "[2*t + 1 for t in sides]", "[t for t in sides if t > 1]", "[t + L for t in range(L)]")
TERMS = ("s", "s**2", "D*s + 1", "s*s*D + s*L", "s//2", "min(s, D)", "max(0, s - 1)", "3", "(s > 1)", "sum(s*t for t in sides)", "s % 3 + D")
TESTS = ("", " if s > 1", " if s % 2 == 0", " if flag", " if s > 0 if s < D")


def case_of(text: str, length: str, config: dict[str, Any], batch: dict[str, Any]) -> Case:
    """A linear whose width and whose rows are sums."""
    document = {
        "name": "small",
        "sizes": {
            "D": {"key": "width"}, "L": {"key": "layers"}, "flag": {"key": "flag", "type": "bool"}, "sides": {"key": "sides", "type": "ints"},
        },
        "derived": {"T": f"1 + {text}"}, "streams": {"text": {"n": length}}, "inputs": {"h": {"stream": "text", "width": "D"}},
        "graph": [{"up": {"op": "linear", "from": "h", "width": "T", "to": "u"}}], "outputs": ["u"],
    }  # fmt: skip
    return Case(document, config, batch, ("*",))


CONFIGS = st.fixed_dictionaries({
    "width": st.integers(1, 5), "layers": st.integers(0, 4), "flag": st.booleans(), "sides": st.lists(st.integers(0, 5), max_size=4),
})  # fmt: skip


@settings(max_examples=amount(40, 2000), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(TERMS), st.sampled_from(ITEMS), st.sampled_from(TESTS), CONFIGS, st.lists(st.integers(0, 6), min_size=1, max_size=3))
def test_a_sum_is_that_of_python(
    term: str, items: str, test: str, config: dict[str, Any], batch: list[int]
) -> None:
    """In a derived size, and in the length of a stream; interpreted, as a closed form, and as a generated module."""
    text = f"sum({term} for s in {items}{test})"
    case = case_of(text, f"x + {text}", config, {"text": batch})
    want = run(case.document, config, case.batch)
    program = program_of(case)
    assert interpreted(program, case, "symflops") == want, (text, config)
    assert closed_form(program, case, "symflops") == (want.forward, want.backward), text
    if items not in ("sides + [2]",) and (whole := symbolic(case)) is not None:
        assert generated(whole, case, "symflops") == want, text


@settings(max_examples=amount(15, 500), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(("min(x, s)", "x*s", "x//(s + 1)", "x")), st.sampled_from(ITEMS[:5]), CONFIGS, st.lists(st.integers(0, 6), min_size=1, max_size=3))
def test_a_sum_of_lengths(term: str, items: str, config: dict[str, Any], batch: list[int]) -> None:
    """What is summed may read the lengths of a batch: as many tokens as fit under each of some bounds."""
    case = case_of("1", f"sum({term} for s in {items})", config, {"text": batch})
    want = run(case.document, config, case.batch)
    assert interpreted(program_of(case), case, "symflops") == want


def test_a_list_of_the_config_stays_open_and_is_printed(tmp_path: Path) -> None:
    """The closed form holds for lists of all lengths; pages and scripts print it as a sum."""
    document = to_yaml(case_of("sum(s**2 for s in sides)", "x", {}, {}).document)
    (tmp_path / "small.yaml").write_text(document.replace("type: ints", "type: ints\n    default: [1, 2]"), "utf-8")
    model = load(tmp_path / "small.yaml")
    program = model.program()
    assert program.fixed == () and program.definitions[0].letter == "T"
    texts = model.structure(targets=("py", "md", "tex")).texts
    assert "sum(sides[s]**2 for s in range(len(sides)))" in texts["py"]
    for ending in ("md", "tex"):
        assert r"_{s=0}^{\lvert \mathit{sides} \rvert - 1} \mathit{sides}_{s}^{2}" in texts[ending]


@pytest.mark.parametrize("text", ["(s for s in sides)", "max(s for s in sides)", "sum((s for s in sides), 1)", "sum(s*t for s in sides for t in sides)", "[s*t for s in sides for t in sides]", "{s for s in sides}", "sum(s for s, t in sides)"])
def test_other_generators_are_refused(text: str) -> None:
    """A sum over one list, or a list made of one, is all there is."""
    document = to_yaml(case_of(text, "x", {}, {}).document)
    with pytest.raises(SpecError) as found:
        read(Source("small.yaml", document), lambda name: None)
    assert {item.code for item in found.value.diagnostics} == {"bad-expression"}
