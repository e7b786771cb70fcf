"""The modules of other projects that vendored estimators import, as far as they use them; tests/clients has the real ones."""

from __future__ import annotations

import sys
import types

import pytest


class Counter:
    """The base class of VeRL-Omni's estimators, of which vendored ones use the config."""

    def __init__(self, config):
        self.config = config


@pytest.fixture
def projects(monkeypatch):
    """A table of verl's, a decorator and a base class of VeRL-Omni's, and classes for annotations."""
    for name in ("verl", "verl.utils", "verl_omni", "verl_omni.utils", "verl_omni.utils.mfu", "kempnerforge", "kempnerforge.config"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    table, registered = types.ModuleType("flops_counter"), {}
    table.ESTIMATE_FUNC = {}
    monkeypatch.setitem(sys.modules, "verl.utils.flops_counter", table)
    counter = types.ModuleType("diffusion_flops_counter")
    counter.DiffusionModelFlops = Counter
    counter.register_diffusion_architecture = lambda *names: lambda cls: registered.update(dict.fromkeys(names, cls)) or cls
    monkeypatch.setitem(sys.modules, "verl_omni.utils.mfu.diffusion_flops_counter", counter)
    model = types.ModuleType("kempnerforge.config.model")
    model.ModelConfig = object
    monkeypatch.setitem(sys.modules, "kempnerforge.config.model", model)
    torch, torch_nn = types.ModuleType("torch"), types.ModuleType("torch.nn")
    torch.nn, torch_nn.Module = torch_nn, object
    for module in (torch, torch_nn):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return {"verl": table.ESTIMATE_FUNC, "verl-omni": registered}
