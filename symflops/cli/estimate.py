"""Parameters and FLOPs of a model for one batch.

  symflops estimate llama --config config.json --batch '{"text": [4096, 1024]}'
  symflops estimate --config model_folder --batch @batch.json --json
  symflops estimate --config config.json --batch '{"text": [4096]}' --trace

SPEC alone means the defaults of its class. A batch maps each stream to one entry per item.
"""

from __future__ import annotations

import json

from symflops.cli.terminal import CONFIG, CONVENTION, JSON, REGIME, SPEC_OR_CONFIG, UNIT, argument, arguments_of, scaled, tell
from symflops.evaluate.evidence import grade_of
from symflops.evaluate.units import AS_SOURCE, MULTIPLY_ADD, NAMES
from symflops.support.errors import SymflopsError
from symflops.support.reading import parse_json, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


configure = arguments_of(
    SPEC_OR_CONFIG,
    CONFIG,
    argument("--batch", required=True, metavar="JSON|@FILE", help='e.g. \'{"latent": [4096], "prompt": [77]}\''),
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
    found = estimated(args, batch_of(args.batch))
    if args.unit == "macs" and found["unit"] != "macs":
        divisor, found["unit"] = 2 if found["unit"] == "flops" else 1, "macs"
        for key in ("forward", "backward", "recomputed", "total"):
            found[key] //= divisor
        from symflops.evaluate.moments import per_token

        found["flops_per_token"] = per_token(found["total"], found["tokens"])
    print(json.dumps(found) if args.json else table(found))
    return 0


def batch_of(text: str) -> dict[str, Any]:
    """Parse a batch, given as JSON or as ``@`` and the path of a JSON file: streams mapped to lengths."""
    batch = read_json(text[1:]) if text.startswith("@") else parse_json(text, "the batch")
    if not isinstance(batch, dict):
        raise SymflopsError('a batch maps streams to lists, e.g. {"text": [4096, 1024]}')
    return batch


def asked(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Return (model, batch) of a command line; without ``--batch``, a typical batch."""
    from symflops.analysis.subject import Subject
    from symflops.library.lookup import read_config

    subject = Subject(args.spec, read_config(args.config) if args.config else None, args.regime, args.convention)
    return subject, batch_of(args.batch) if args.batch else subject.batch()


def estimated(args: argparse.Namespace, batch: dict[str, Any]) -> dict[str, Any]:
    """Return the estimate of the model of a command line on ``batch``, as the JSON object to print."""
    from symflops.library import lookup
    from symflops.library.names import Named
    from symflops.library.naming import estimator_for

    if args.trace:
        return noted(traced(args, batch))
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
    return noted(lookup.result(model, batch))


def traced(args: argparse.Namespace, batch: dict[str, Any]) -> dict[str, Any]:
    """Trace the class of the config of a command line; return the estimate on ``batch``, as :func:`estimated`."""
    from symflops.training.introspect.traced import estimate

    if args.spec or args.prove or args.strict:
        raise SymflopsError("--trace is for a config alone: it goes without a SPEC, --prove and --strict")
    return estimate(args.config, batch, args.regime, args.convention, args.trust)


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
    lines = [f"{spec}, regime {found['regime']}, convention {found['convention']}{single}"]
    for name in ("parameters", "active parameters", "trainable parameters"):
        key = {"active parameters": "parameters_active"}.get(name, name.replace(" ", "_"))
        if found[key] is not None:
            lines.append(f"  {name:<22} {found[key]:>26,}")
    for key in ("forward", "backward", "recomputed", "total"):
        lines.append(f"  {key:<22} {found[key]:>26,} {unit:<6} {scaled(found[key])}{unit}")
    if found["tokens"]:
        each = found["flops_per_token"]
        lines.append(f"  {'tokens':<22} {found['tokens']:>26,}")
        lines.append(f"  {'per token':<22} {each:>26,} {unit:<6} {scaled(each)}{unit}")
    lines.append("  moments                " + ", ".join(f"{name} = {value:,}" for name, value in found["moments"].items()))
    lines.append(f"  grade                  {grade_of(found['evidence'])}")
    return "\n".join(lines)
