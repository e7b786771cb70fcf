"""Solves for one size, a length or the tokens at a budget of FLOPs, both passes; the closest whole number from below.

  symflops solve llama --for num_hidden_layers --flops 1e15 --batch '{"text": [4096]}'
  symflops solve llama --for tokens --flops 1e21
  symflops solve llama --for hidden_size --flops 1e21 --tokens 2e9

--for takes a letter or a config field, a stream (text) or one of its axes (latent.h): that length of every item. Without
--tokens the budget is of one step on the batch; with it, of as many whole steps as those tokens take. All else stays.
"""

from __future__ import annotations

import argparse
import json

from symflops.cli.estimate import asked
from symflops.cli.terminal import BATCH, CONFIG, CONVENTION, JSON, REGIME, SPEC_OR_CONFIG, argument, arguments_of, of_batch
from symflops.evaluate.batch_text import whole
from symflops.evaluate.units import NAMES
from symflops.support.errors import SymflopsError

configure = arguments_of(
    SPEC_OR_CONFIG,
    argument("--for", dest="name", required=True, metavar="NAME", help="a size, a stream, or 'tokens'"),
    argument("--flops", required=True, metavar="F", help="the budget, e.g. 1e21"),
    argument("--tokens", default="0", metavar="T", help="tokens to train on; default: one step"),
    CONFIG,
    BATCH,
    REGIME,
    CONVENTION,
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Solve for the size or length at which a step costs the budget, print it, and return exit code 0."""
    from symflops.analysis.solve import solve

    budget, tokens = whole(args.flops, "--flops"), whole(args.tokens, "--tokens")
    if args.name == "tokens" and tokens:
        raise SymflopsError("say either --for tokens or --tokens")
    subject, batch = asked(args, quiet=True)
    found = solve(subject, args.name, budget, batch, tokens)
    if args.json:
        told = {"schema": 1, "spec": subject.program.name, "regime": args.regime, "convention": args.convention}
        told |= {"for": args.name, "unit": subject.estimator.unit, "budget": budget, "tokens": tokens or None, "batch": batch}
        told |= {"value": found.value, "flops": found.flops, "remainder": found.remainder, "step": found.step}
        told |= {"next": found.following, "next_flops": found.following_flops}
        print(json.dumps(told | {"grows": found.grows, "monotone": found.throughout}))
        return 0
    unit = NAMES[subject.estimator.unit]
    print(f"{args.name} = {found.value:,}")
    rows = ("budget", budget), (f"at {found.value:,}", found.flops), ("left of the budget", found.remainder)
    more = ((f"at {found.following:,}", found.following_flops or 0),) if found.following is not None else ()
    for name, value in (*rows, *more):
        print(f"  {name:<26} {value:>34,} {unit}")
    if not args.batch:
        print(f"of a step on the {of_batch(batch)}")
    if found.step > 1 and args.name != "tokens":
        print(f"the model takes every {found.step}th value here")
    if not found.grows:
        print("the cost falls as the value rises: this is the least value within the budget")
    if not found.throughout:
        print("the cost rises and falls with the value: others may fit the budget as well")
    return 0
