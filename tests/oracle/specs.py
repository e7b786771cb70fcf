"""Random small specs that are always valid, with a config, a batch and train patterns."""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import strategies as st
from ruamel.yaml import YAML

from .builder import Builder, Known
from .interpreter import run
from .steps import BLOCKS, linear, repeat, step


@dataclass(frozen=True)
class Case:
    """A spec as plain data, and what to evaluate it on."""

    document: dict[str, Any]
    config: dict[str, Any]
    batch: dict[str, Any]
    train: tuple[str, ...]


def to_yaml(document: dict[str, Any]) -> str:
    """The document as YAML text: order kept, no anchors, expressions stay strings."""
    yaml = YAML()
    yaml.width = 4096
    buffer = io.StringIO()
    yaml.dump({"language": 2, **written(json.loads(json.dumps(document)))}, buffer)
    return buffer.getvalue()


def written(data: Any) -> Any:
    """Data as it is written: an entry at the path around it, `_`, has no path."""
    if isinstance(data, list):
        return [written(item) for item in data]
    if not isinstance(data, dict):
        return data
    return written(data["_"]) if [*data] == ["_"] else {key: written(value) for key, value in data.items()}


SIZES: dict[str, Any] = {
    "D": {"key": "model_width"}, "E": {"key": ["other_width", "alias_width"]}, "F": "nested.third_width",
    "G": {"key": "num_kv_heads"}, "R": {"key": "group_size", "default": 2}, "d": {"key": "head_dim"},
    "R1": {"key": "num_layers"}, "R2": {"key": "num_blocks", "default": "R1"}, "V": {"key": "vocab", "default": "3*D"},
    "flag": {"key": "use_flag", "type": "bool"}, "other": {"key": "use_other", "default": False}, "kinds": {"key": "kinds", "type": "list"},
}  # fmt: skip


def _config(rng: Random) -> dict[str, Any]:
    """Values for every key; the optional ones are sometimes missing."""
    counts = [0, 1, 1, 2, 2, 2, 3, 3, 4, 5]
    config: dict[str, Any] = {
        "model_width": rng.randint(1, 7), rng.choice(["other_width", "alias_width"]): rng.randint(1, 7),
        "nested": {"third_width": rng.randint(1, 7)}, "num_kv_heads": rng.randint(1, 3),
        "head_dim": rng.randint(1, 3), "num_layers": rng.choice(counts), "use_flag": rng.random() < 0.5,
        "kinds": [rng.randint(0, 1) for _ in range(rng.randint(0, 3))],
    }  # fmt: skip
    extra = {"group_size": rng.randint(1, 3), "num_blocks": rng.choice(counts), "use_other": True,
             "vocab": rng.randint(1, 7)}  # fmt: skip
    return config | {k: v for k, v in extra.items() if rng.random() < 0.5}


def _words(data: Any) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", json.dumps(data)))


def _patterns(rng: Random, labels: list[str]) -> tuple[str, ...]:
    """Everything, nothing, or a few globs over labels (never over the index of a repeat)."""
    kind = rng.random()
    if kind < 0.45:
        return () if kind < 0.05 else ("*",)
    globs = [g for label in labels for g in (f"*.{label}.*", f"{label}.*")] + ["*.weight", "*.bias"]
    globs += [label for label in labels if label.startswith("a")]
    return tuple(dict.fromkeys(rng.choices(globs, k=rng.randint(1, 6))))


def _head(rng: Random, more: Random, further: bool) -> tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]:
    """Axes of the prompt, streams, inputs."""
    axes = rng.choice([("y",), ("y",), ("h", "w")])
    streams: dict[str, Any] = {"text": ["x"], "prompt": list(axes), "sample": [], "table": {"over": "once", "axes": {}}}
    inputs: dict[str, Any] = {
        "ht": {"stream": "text", "width": "D"},
        "hp": {"stream": "prompt", "width": rng.choice(["D", "E"])},
    }
    if rng.random() < 0.5:
        inputs["hs"] = {"stream": "sample", "width": rng.choice(["D", "F"])}
    if rng.random() < 0.25:
        inputs["hm"] = {"stream": "sample", "width": "E", "when": "flag"}
    if further and more.random() < 0.25:  # as long as another stream, or as long as the batch says for all samples
        streams["labels"] = {"z": more.choice(["x", "x + 1", "2*x"])}
        inputs["hl"] = {"stream": "labels", "width": "D"}
    if further and more.random() < 0.25:
        streams["steps"] = {"over": "samples", "axes": ["s"], "default": more.randint(1, 4)}
        inputs["hn"] = {"stream": "steps", "width": more.choice(["D", "E"])}
    if rng.random() < 0.3:
        streams["image"] = {"over": "images", "axes": ["g"]}
        inputs["hi"] = {"stream": "image", "width": "F"}
    return axes, streams, inputs


def make_case(seed: int, budget: int, *, further: bool = True) -> Case:
    """A valid spec with a config, a batch and train patterns; a function of its arguments; ``further`` streams came later."""
    rng = Random(seed)
    more = Random(f"more {seed}")
    axes, streams, inputs = _head(rng, more, further)
    values = {n: Known(i["stream"], i["width"], "when" in i) for n, i in inputs.items()}
    b = Builder(rng, budget, values, axes, more=more)
    graph: list[dict[str, Any]] = []
    if b.chance(30):
        inputs["ids"] = {"stream": "text"}
        graph += b.entry({"op": "embedding", "from": "ids", "rows": "V", "width": "D"}, "text", "D", extras=False)
    name, entries = b.project(b.pick(["ht", "hp"]), b.pick(["D", "E"]))
    graph += entries
    graph += linear(b) if b.chance(50) else []
    graph += repeat(b) if b.budget > 0 and b.chance(75) else []
    while b.budget > 0:
        graph += step(b)
    computed = [n for n in b.sure() if n in b.bound]
    outputs = list(dict.fromkeys(rng.choices([*computed, *computed[-3:]], k=b.pick([1, 1, 2, 3]))))
    called = {e["block"] for e in _entries(graph) if "block" in e}
    document: dict[str, Any] = {
        "name": "small", "sizes": {}, "derived": {}, "streams": streams, "inputs": inputs,
        "blocks": {n: copy.deepcopy(BLOCKS[n]) for n in BLOCKS if n in called}, "graph": graph, "outputs": outputs,
    }  # fmt: skip
    words = _words([graph, inputs, document["blocks"]])
    if "H" in words:
        document["derived"]["H"] = "G*R"
        words |= {"G", "R"}
    words |= {"R1"} if "R2" in words else set()
    words |= {"D"} if "V" in words else set()
    document["sizes"] = {n: copy.deepcopy(s) for n, s in SIZES.items() if n in words}
    used = {i["stream"] for i in inputs.values()} | _words(graph)
    document["streams"] = {n: s for n, s in streams.items() if n in used}
    document = {k: v for k, v in document.items() if v != {}}
    samples = rng.randint(1, 3)
    batch: dict[str, Any] = {
        "text": [rng.randint(0, 5) for _ in range(samples)],
        "prompt": [[rng.randint(0, 4) for _ in axes] if len(axes) > 1 else rng.randint(0, 5) for _ in range(samples)],
    }
    if "steps" in streams and more.random() < 0.7:
        batch["steps"] = more.choice([more.randint(0, 4), [more.randint(0, 4) for _ in range(samples)]])
    if "image" in streams:
        batch["image"] = [rng.randint(0, 5) for _ in range(rng.randint(0, 3))]
    return Case(document, _config(rng), batch, _patterns(rng, b.labels))


def small_specs() -> st.SearchStrategy[Case]:
    """Random valid cases (drawn by seed, so that all constructs are equally likely; see `reduced` for shrinking)."""
    return st.builds(make_case, st.integers(0, 2**32 - 1), st.sampled_from(range(2, 12)))


def reduced(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case that still fails: entries and fields are dropped while the oracle accepts what is left."""

    def still(candidate: Case) -> bool:
        try:
            run(candidate.document, candidate.config, candidate.batch)
        except Exception:  # noqa: BLE001 - not a valid spec any more
            return False
        return fails(candidate)

    progress = True
    while progress:
        progress = False
        for position in range(len(_cuts(case.document))):
            document = copy.deepcopy(case.document)
            cuts = _cuts(document)
            if position >= len(cuts):
                break
            holder, key = cuts[position]
            del holder[key]
            if still(smaller := replace(case, document=document)):
                case, progress = smaller, True
    return case


def _cuts(document: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Everything that may be dropped: entries, optional fields, outputs."""
    optional = ("with", "gate", "add_to", "when", "bias", "mask", "fold", "tie", "shared", "no_grad")
    found: list[tuple[Any, Any]] = [(document["outputs"], i) for i in range(len(document["outputs"]))]
    stack = [document["graph"]]
    while stack:
        entries = stack.pop()
        found += [(entries, i) for i in range(len(entries))]
        for each in entries:
            for entry in each.values():
                found += [(entry, f) for f in optional if f in entry]
                stack += [entry["graph"]] if "graph" in entry else []
    return found


def _entries(graph: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All entries, at every depth."""
    found: list[dict[str, Any]] = []
    for each in graph:
        for entry in each.values():
            found += [entry, *_entries(entry.get("graph", []))]
    return found
