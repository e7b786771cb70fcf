"""Real classes are drafted from a small config and proven at published sizes; docs/drafted.md has the table of all classes."""

import json
from pathlib import Path

import pytest

from symflops.draft.draft import draft
from symflops.draft.prove.prove import PUBLISHED
from symflops.draft.trace.steps import Subject

TRUTH = Path(__file__).resolve().parents[1] / "data" / "truth"


def drafted(name):
    records = json.loads((TRUTH / f"{name}.json").read_text("utf-8"))
    small = next(one for one in records if not one["published_size"])
    published = next(one for one in records if one["published_size"] and set(one["inputs"]) == set(small["inputs"]))
    subjects = [Subject(f"{one['package']}:{name}", one["config"], one["inputs"]) for one in (small, published)]
    return draft(subjects[0], 600.0, published=subjects[1:])


@pytest.mark.parametrize(
    ("name", "most", "wanted"),
    [
        pytest.param("LlamaForCausalLM", 32, ("repeat: L", "op: attention", "block: "), marks=pytest.mark.nightly),
        # a router with experts is one block, and a field that the published config lacks has the default that the class takes
        pytest.param("Qwen3MoeForCausalLM", 37, ("repeat: L", "block: routed_mlp", "default: D//H"), marks=pytest.mark.nightly),
        pytest.param("DiTTransformer2DModel", 56, ("block: timestep_mlp", "start: 1", "block: feed_forward"), marks=pytest.mark.nightly),
    ],
)
def test_it_is_exact_and_reads_like_a_written_one(name, most, wanted):
    found = drafted(name)
    assert found.exact, (found.given_up, found.unsolved, found.proofs)
    assert not found.stuck
    assert sum(one.kind == PUBLISHED for one in found.proofs) == 1
    assert len(found.text.splitlines()) <= most
    for words in wanted:
        assert words in found.text
