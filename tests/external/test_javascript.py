"""The estimators in JavaScript give the integers of those in Python: sizes, regimes, conventions, ragged and padded batches."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from symflops.library.records.verified import published
from symflops.read.spec_files import find_spec
from tests.external.conftest import Site, Watched

pytestmark = pytest.mark.system

MODELS = (
    "llama", "deepseek_v3", "gemma3", "qwen3_moe", "jamba", "kimi_linear", "mamba2", "bert", "t5",
    "qwen_image", "flux2", "wan", "cosmos", "hunyuan_video", "unet_2d_condition", "autoencoder_kl_wan", "sd3_controlnet",
    "swin", "segformer", "whisper", "wav2vec2", "clip", "qwen2_5_vl", "lstm", "transformer",
)  # fmt: skip
BATCHES = 4

RUN = """([key, asks]) => {
  const model = symflops[key], text = (_, value) => typeof value === "bigint" ? String(value) : value;
  return JSON.parse(JSON.stringify(asks.map(({config, regime, convention, batch}) => {
    const one = new model.Estimator(model.sizes(config), {regime, convention}), m = one.moments(batch);
    return {
      moments: m.values, parameters: one.parameters, trainable: one.trainableParameters, tensors: one.tensors(),
      passes: [one.forward(m), one.backward(m), one.recomputed(m), one.total(m)],
      modules: Object.fromEntries(Object.entries(one.byModule(m)).map(([name, f]) => [name, [f.forward, f.backward, f.recomputed]])),
      parts: Object.values(one.byPart(m)).reduce((sum, f) => sum + f.forward + f.backward, 0n),
    };
  }), text));
}"""


def configs_of(name: str, attributes: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The defaults, the published models, and each with another depth or width where a number may be changed."""
    measured = [dict(item.config) for item in published(find_spec(name))]
    yield {}
    yield from measured
    draw = random.Random(name)
    for config in ({}, *measured[:2]):
        for key in ("num_hidden_layers", "num_layers", "vocab_size", "in_channels", "intermediate_size"):
            if key in attributes:
                yield with_value(config, attributes[key], draw.randint(0, 9))


def with_value(config: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A config with a value at a path of names, whether or not it has the parts on the way."""
    first, _, rest = key.partition(".")
    inner = config.get(first)
    return {**config, first: with_value(inner if isinstance(inner, dict) else {}, rest, value) if rest else value}


def batch_of(module: Any, draw: random.Random) -> dict[str, Any]:
    """A ragged batch; lengths of several axes are multiples of 48, which all shipped models divide, and may be padded."""
    batch: dict[str, Any] = {}
    for streams in module.SETS.values():
        items = draw.randint(0, 5)
        for name, axes, _ in streams:
            if not axes:
                batch[name] = items
                continue
            most = draw.choice((100, 10_000, 1_000_000))
            rows = [[draw.choice((0, 1, draw.randint(0, most))) if len(axes) == 1 else 48 * draw.randint(1, 4) for _ in axes] for _ in range(items)]
            real = [row[0] if len(axes) == 1 else row for row in rows]
            longest = [max(column) for column in zip(*rows)]
            padded = [longest[0] if len(axes) == 1 else longest for _ in rows]
            batch[name] = {"lengths": real, "padded": padded} if draw.random() < 0.3 else real
    return batch


def asked(name: str, module: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Questions, and what the Python estimator answers."""
    draw = random.Random(name)
    for config in configs_of(name, {row["attribute"]: row["keys"][0] for row in module.Estimator.document["fields"]}):
        for regime in module.REGIMES:
            for convention in module.CONVENTIONS:
                try:
                    one = module.Estimator(module.Sizes.from_config(config), regime=regime, convention=convention)
                except (ValueError, IndexError):
                    continue  # of another structure, without a size that has no default, or deeper than a list says
                for _ in range(BATCHES):
                    for _ in range(20):
                        batch = batch_of(module, draw)
                        with suppress(ValueError):  # an item of which the model leaves nothing, or that the class does not take
                            m = one.moments(**batch)
                            break
                    else:
                        continue
                    answer = {
                        "moments": list(m.as_dict().values()), "parameters": one.parameters, "trainable": one.trainable_parameters,
                        "tensors": one.tensors(), "passes": [one.forward(m), one.backward(m), one.recomputed(m), one.total(m)],
                        "modules": {name: [flops.forward, flops.backward, flops.recomputed] for name, flops in one.by_module(m).items()},
                        "parts": one.total(m),
                    }  # fmt: skip
                    yield {"config": config, "regime": regime, "convention": convention, "batch": batch}, answer


def as_text(value: Any) -> Any:
    """Whole numbers as texts: JSON of JavaScript would round them."""
    if isinstance(value, dict):
        return {name: as_text(item) for name, item in value.items()}
    return [as_text(item) for item in value] if isinstance(value, list) else str(int(value))


@pytest.mark.parametrize("name", MODELS)
def test_a_script_gives_the_integers_of_the_python_estimator(name: str, site: Site, watched: Watched) -> None:
    module = importlib.import_module(f"symflops.generated.{find_spec(name).group}.{name}")
    page = watched.page
    page.goto("about:blank")
    script = page_script(site, name)
    page.add_script_tag(path=script)
    assert script.stat().st_size <= 300_000
    questions = list(asked(name, module))
    assert len(questions) >= BATCHES * len(module.CONVENTIONS)
    (key,) = page.evaluate("Object.keys(symflops)")
    found = page.evaluate(RUN, [key, [question for question, _ in questions]])
    for (question, expected), answer in zip(questions, found, strict=True):
        assert answer == as_text(expected), question


def page_script(site: Site, name: str) -> Path:
    """The script that the page of a model loads first."""
    page = Path(site.address(name).removeprefix("file://"))
    data = page.read_text("utf-8").partition('<script type="application/json" id="model">')[2].partition("</script>")[0]
    return page.parent / json.loads(data)["estimators"][0][1]


@pytest.mark.parametrize(
    ("config", "batch", "field"),
    [
        ({"num_hidden_layers": 2.5}, {"text": [1]}, "num_hidden_layers"),
        ({"num_hidden_layers": 100_001}, {"text": [1]}, "num_hidden_layers"),
        ({"num_attention_heads": 0}, {"text": [1]}, "head_dim"),
        ({"tie_word_embeddings": "yes"}, {"text": [1]}, "tie_word_embeddings"),
        ({}, {"text": [-1]}, "text"),
        ({}, {"text": [1.5]}, "text"),
        ({}, {"text": [[1, 2]]}, "text"),
        ({}, {}, "text"),
        ({}, {"text": [1], "image": [1]}, "image"),
    ],
)
def test_bad_input_names_its_field(config: Any, batch: Any, field: str, site: Site, watched: Watched) -> None:
    watched.page.goto("about:blank")
    watched.page.add_script_tag(path=page_script(site, "llama"))
    run = "([config, batch]) => { const m = symflops.llama; try { new m.Estimator(m.sizes(config)).moments(batch); } catch (e) { return [e.field ?? e.stream, e.message]; } }"
    where, message = watched.page.evaluate(run, [config, batch])
    assert where == field
    assert message
