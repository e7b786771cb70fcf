"""Real classes of every family, each put into drawn regimes: what is read off the module equals PyTorch's counter."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

import pytest
import torch
from peft import LoraConfig, inject_adapter_in_model

import symflops
from symflops.api import load
from symflops.evaluate.classes import class_name, of_class
from symflops.library import lookup
from symflops.support.findings import SymflopsError
from symflops.training.introspect.regime import is_layer_share, is_share
from symflops.training.introspect.tree import makes_leaf
from symflops.verify.live import build, outputs_of, reference_of, run
from symflops.verify.running import arguments_of, moved
from tests.sampling import sampled
from tests.shipped import FILES, cases_of

CATALOGS = [catalog for catalog in lookup.catalogs() if catalog.shipped]
NAMED = [name for catalog in CATALOGS for name in sorted(catalog.specs) if catalog.specs[name]["references"] and catalog.specs[name]["group"] != "nn"]
SPECS = [name for name in NAMED if any(cases_of(FILES[name]))]


def bare(module, rng):
    return True


def frozen(module, rng):
    """Each part with parameters of its own is frozen or not."""
    for part in module.modules():
        if part._parameters and rng.random() < 0.4:
            part.requires_grad_(False)
    return True


def two_parameters(module, rng):
    """The last parameter and a middle one train."""
    parameters = list(module.requires_grad_(False).parameters())
    for place in (-1, len(parameters) // 2):
        parameters[place].requires_grad_(True)
    return True


def adapted(module, rng, **fields):
    """LoRA on the linears of some names."""
    linears = [name for name, part in module.named_modules() if type(part) is torch.nn.Linear]
    ends = sorted({name.rpartition(".")[2] for name in linears if not name.rpartition(".")[2].isdigit()})
    chosen = {end for end in ends if rng.random() < 0.5} or set(ends[:1])
    targets = [name for name in linears if name.rpartition(".")[2] in chosen]
    module.requires_grad_(False)
    if not targets:
        return False
    try:
        inject_adapter_in_model(LoraConfig(r=rng.choice([2, 3, 5]), target_modules=targets, **fields), module)
    except ValueError:  # PEFT refuses some modules
        return False
    return True


def dora(module, rng):
    return adapted(module, rng, use_dora=True)


def checkpointed(module, rng):
    """Every block is recomputed; without dropout, whose masks would have to be recomputed as well."""
    if getattr(module, "supports_gradient_checkpointing", False):
        module.gradient_checkpointing_enable({"use_reentrant": rng.random() < 0.5})
    elif getattr(module, "_supports_gradient_checkpointing", False):
        module.enable_gradient_checkpointing()
    else:
        return False
    for part in module.modules():
        for field, value in vars(part).items():
            if isinstance(value, float) and is_share(part, field):
                setattr(part, field, 0.0)
    module.train()
    return True


KINDS = (bare, frozen, two_parameters, adapted, dora, checkpointed)
CASES = [(name, kind) for place, name in enumerate(SPECS) for kind in (*KINDS[place % 6 :], *KINDS[: place % 6])]
REFUSALS = ("regimes do not describe", "regimes describe it beside", "cannot be read off its source", "cannot stand on", "matches nothing")


def in_regime(spec, case, name, kind):
    """The real module in a drawn regime of a kind; where its class has none, as it is."""
    for chosen in (kind, bare):
        module, _ = build(reference_of(spec, case), case, spec.file.path.parent)
        if chosen(module, random.Random(f"{name} {kind.__name__}")):
            break
    if any(size.evaluation is not None for size in spec.spec.sizes) or any(makes_leaf(part) for part in module.modules()):
        module.train()  # a config, or the class, says what the model does in training
        for held in (held for part in module.modules() for held in (part, getattr(part, "config", part))):
            vars(held).update(dict.fromkeys(filter(is_layer_share, vars(held)), 0.0))
    return module


def counted(spec, case, name, kind):
    """The module, what is read off it, and what PyTorch's counter counts; on the CPU if it does not run on the meta device."""
    module = in_regime(spec, case, name, kind)
    model = symflops.of_model(module, convention="torch")
    arguments = moved(arguments_of(model.program, case.batch, model.sizes, case.arguments), case.device)
    try:
        return model, run(module, arguments, case, True, False, outputs_of(spec))
    except SymflopsError:
        if case.device == "cpu":
            raise
        return counted(spec, replace(case, device="cpu"), name, kind)


@pytest.mark.parametrize(("name", "kind"), sampled(CASES, 97))
def test_a_family(name, kind):
    """What is read off is equal to the counter, or refused for a reason that has words of its own."""
    file = FILES[name]
    spec = load(file)
    case = next(iter(cases_of(file)))
    try:
        model, (forward, backward) = counted(spec, case, name, kind)
    except SymflopsError as error:
        assert "\n" not in str(error) and any(words in str(error) for words in REFUSALS), error
        return
    moments = model.moments(**case.batch)
    assert (model.forward(moments), model.backward(moments) + model.recomputed(moments)) == (forward.total, backward.total)


def of_own_structure():
    """The first case, of every spec whose sizes must fit each other, of another structure than any that is stored."""
    for name in SPECS:
        catalog = next(found for found in CATALOGS if name in found.specs)
        if catalog.program(name).get("requirements"):
            found = (case for case in cases_of(FILES[name]) if catalog.of_structure(name, of_class(case.config, class_name(case.reference or catalog.specs[name]["references"][0])))[0] is None)
            yield from ((name, case) for case in islice(found, 1))


@pytest.mark.parametrize(("name", "case"), sampled(of_own_structure(), 4, 1))
def test_sizes_fit_as_their_own_structure_demands(name, case):
    """A live module is not held against a program that is stored for another structure."""
    module = in_regime(load(FILES[name]), case, name, bare)
    assert symflops.of_model(module).parameters == sum(parameter.numel() for parameter in module.parameters())
