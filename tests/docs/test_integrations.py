"""The blocks of the page on integrations, run one after another.

verl and VeRL-Omni are stood in for: they need Ray, which no extra brings. ``tests/clients`` runs inside of the real ones.
"""

from __future__ import annotations

import sys
import types

import pytest

from tests.docs.pages import DOCS, blocks


@pytest.fixture
def frameworks(monkeypatch):
    """What the adapters import of verl and VeRL-Omni, by the names that these have."""
    names = ("verl", "verl.utils", "verl.utils.flops_counter", "verl_omni", "verl_omni.utils", "verl_omni.utils.mfu")
    made = {name: types.ModuleType(name) for name in names}
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, word = name.rpartition(".")
        if parent:
            setattr(made[parent], word, module)
    made["verl.utils.flops_counter"].ESTIMATE_FUNC = {}
    made["verl.utils.flops_counter"].FlopsCounter = type("FlopsCounter", (), {})
    registry: dict[str, type] = {}

    def register(*pipelines):
        return lambda kind: registry.update(dict.fromkeys(pipelines, kind)) or kind

    made["verl_omni.utils.mfu"].DiffusionModelFlops = type("DiffusionModelFlops", (), {})
    made["verl_omni.utils.mfu"].register_diffusion_architecture = register
    return made["verl.utils.flops_counter"].ESTIMATE_FUNC, registry


def test_the_page_runs(frameworks, capsys):
    estimators, pipelines = frameworks
    namespace: dict[str, object] = {"__name__": "page"}
    ran = []
    for block in blocks(DOCS / "integrations.md"):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, "integrations.md", "exec"), namespace)
            ran.append(block)
    assert len(ran) == 10
    assert set(estimators) == {"llama"} and set(pipelines) == {"QwenImagePipeline"}
    assert "'mfu'" in capsys.readouterr().out


def test_what_is_only_shown_exists():
    """The Trainer's block needs a trainer, and Megatron's last lines need Megatron: their names are right; tests/clients runs them."""
    from symflops.training.frameworks import accelerate, huggingface, lightning, megatron

    page = (DOCS / "integrations.md").read_text("utf-8")
    assert "huggingface.attach(trainer)" in page and callable(huggingface.attach)
    assert "megatron.patch(training, estimator)" in page and callable(megatron.patch)
    assert "megatron.patch_bridge(flop_utils, estimator)" in page and callable(megatron.patch_bridge)
    assert "accelerate.attach(accelerator, " in page and callable(accelerate.attach) and "lightning.callback(lambda module: " in page and callable(lightning.callback)
    assert "lightning.flops_of_batch(estimator, batch)" in page and callable(lightning.flops_of_batch)
