"""Parameters and FLOPs of a model for one batch.

  symflops estimate llama --config config.json --batch '{"text": [4096, 1024]}'
  symflops estimate --config model_folder --batch @batch.json --json
  symflops estimate llama-3.1-8b --batch 8192*8
  symflops estimate sdxl --height 1024 --width 1024 --steps 50 --guidance
  symflops estimate --config config.json --batch '{"text": [4096]}' --trace

SPEC alone means the defaults of its class. A batch has one length per item: of one stream 8192*8 or 4096,1024, of several
'latent=64x64*2; prompt=77*2', or a JSON object that maps each stream to its list.
"""

from __future__ import annotations

import json

from symflops.cli.amounts import chosen_batch, given_for_batch
from symflops.cli.terminal import (
    BATCH,
    CONFIG,
    CONVENTION,
    JSON,
    REGIME,
    SPEC_OR_CONFIG,
    UNIT,
    argument,
    arguments_of,
    line_width,
    scaled,
    tell,
    wrapped,
)
from symflops.evaluate.batch_text import batch_of, whole
from symflops.evaluate.evidence import grade_of
from symflops.evaluate.units import AS_SOURCE, MULTIPLY_ADD, NAMES
from symflops.support.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


configure = arguments_of(
    SPEC_OR_CONFIG,
    CONFIG,
    BATCH,
    argument("--steps", metavar="N", help="a generation: so many forward passes (with --guidance: of each sample twice)"),
    CONVENTION,
    REGIME,
    argument("--strict", action="store_true", help="refuse a config with keys that neither the spec nor the class knows"),
    argument("--prove", action="store_true", help="compare parameters, and masks, with those of the installed library's class"),
    argument("--trace", action="store_true", help="trace the config's class in place of a spec (some ten seconds, then kept)"),
    argument("--trust", action="store_true", help="with --trace: run code that the config names (auto_map)"),
    UNIT,
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Estimate the FLOPs of a batch and print the estimate; return the exit code 0."""
    if not args.spec and not args.config:
        raise SymflopsError("say which model: a SPEC, or --config PATH")
    found = estimated(args)
    if args.steps:
        found = generated(found, whole(args.steps, "--steps"))
    if args.unit == "macs" and found["unit"] != "macs":
        divisor, found["unit"] = 2 if found["unit"] == "flops" else 1, "macs"
        for key in ("forward", "backward", "recomputed", "total"):
            found[key] //= divisor
        from symflops.evaluate.moments import per_token

        found["flops_per_token"] = per_token(found["total"], found["tokens"])
    print(json.dumps(found) if args.json else table(found))
    return 0


def generated(found: dict[str, Any], steps: int) -> dict[str, Any]:
    """Multiply the estimate of a forward pass (a JSON object) by the number of ``steps`` of a generation."""
    from symflops.evaluate.moments import per_token

    found |= {key: steps * found[key] for key in ("forward", "backward", "recomputed", "total")} | {"steps": steps}
    found["flops_per_token"] = per_token(found["total"], found["tokens"])
    return found


def asked(args: argparse.Namespace, quiet: bool = False) -> tuple[Any, dict[str, Any]]:
    """Return (model, batch) of a command line; without a batch a typical one, with a message unless ``quiet``."""
    from symflops.analysis.subject import Subject
    from symflops.library.lookup import read_config

    subject = Subject(args.spec, read_config(args.config) if args.config else None, args.regime, args.convention)
    return subject, chosen_batch(args, subject.estimator, quiet)


def estimated(args: argparse.Namespace) -> dict[str, Any]:
    """Return the estimate of the model and batch of a command line, as the JSON object to print."""
    from symflops.library.lookup import result

    if args.steps and args.regime == "full":
        args.regime = "forward"
    return noted(traced(args) if args.trace else result(*model_and_batch(args)))


def model_and_batch(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Return (estimator, batch) of a command line, and print what is noticed about its config."""
    from symflops.library import lookup
    from symflops.library.names import Named
    from symflops.library.naming import estimator_for

    config = lookup.read_config(args.config) if args.config else {}
    name = args.spec or lookup.by_config(config)[1]
    if args.prove and lookup.is_file(name):
        raise SymflopsError("--prove is for the specs of a catalog: verify a file with 'symflops verify'")
    model = estimator_for(Named(name, config, asked=getattr(args, "asked", "")), args.regime, rules_of(args), tell, args.strict)
    if model.evidence["named_by"] == "model_type":
        tell(f"the config names no class: read as {model.evidence['class']}, as model type '{config['model_type']}' says")
    if args.prove:
        from symflops.training.introspect.proof import proof

        tell(proof(lookup.by_name(name), name, config))
        model.proven = True
    return model, chosen_batch(args, model)


def traced(args: argparse.Namespace) -> dict[str, Any]:
    """Trace the class of the config of a command line; return the estimate on its batch, as :func:`estimated`."""
    from symflops.training.introspect.traced import estimate

    if args.set or args.lenient or args.spec or args.prove or args.strict:
        raise SymflopsError("--trace is for a config alone: it goes without a SPEC, --set, --lenient, --prove and --strict")
    if given_for_batch(args) != ["--batch"]:
        raise SymflopsError("--trace needs the lengths of a batch and nothing else of it, e.g. --batch 4096*2")
    return estimate(args.config, batch_of(args.batch, (), tell), args.regime, args.convention, args.trust)


def noted(found: dict[str, Any]) -> dict[str, Any]:
    """Print the notes of an estimate (a JSON object) to standard error, and return the estimate."""
    for note in found["notes"]:
        tell(note)
    return found


def rules_of(args: argparse.Namespace) -> Any:
    """Return the convention of a command line.

    For ``--unit macs``, a convention that counts elementwise work is replaced by one without that work.
    """
    if args.unit == "flops" or args.convention in ("symflops", "torch"):
        return args.convention
    from symflops.api import convention_of

    rules = convention_of(args.convention)
    return args.convention if rules.unit != "flops" or rules.has_half_macs else rules.in_macs


def table(found: dict[str, Any]) -> str:
    """Format an estimate as text: exact numbers with units, and rounded FLOPs."""
    unit = NAMES[found["unit"]]
    spec = getattr(found, "asked", "") or (f"{found['spec']} ({found['variant']})" if found["variant"] else found["spec"])
    single = f", a multiply-add as {MULTIPLY_ADD[AS_SOURCE]}" if found["unit"] == AS_SOURCE else ""
    steps = f", {found['steps']:,} steps" if "steps" in found else ""
    lines = [f"{spec}, regime {found['regime']}{steps}, convention {found['convention']}{single}"]
    for name in ("parameters", "active parameters", "trainable parameters"):
        key = {"active parameters": "parameters_active"}.get(name, name.replace(" ", "_"))
        if found[key] is not None:
            lines.append(f"  {name:<22} {found[key]:>26,}")
    for key in ("forward", "backward", "recomputed", "total"):
        name = "total of both passes" if key == "total" and found["recomputed"] else key
        lines.append(f"  {name:<22} {found[key]:>26,} {unit:<6} {scaled(found[key])}{unit}")
    if found["tokens"]:
        each = found["flops_per_token"]
        lines.append(f"  {'tokens':<22} {found['tokens']:>26,}")
        lines.append(f"  {'per token':<22} {each:>26,} {unit:<6} {scaled(each)}{unit}")
    moments = ", ".join(f"{name} = {value:,}" for name, value in found["moments"].items())
    lines += wrapped(moments, line_width(), "  moments                ", " " * 25)
    lines.append(f"  grade                  {grade_of(found['evidence'])}")
    return "\n".join(lines)
