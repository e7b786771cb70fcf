"""Lengths of a batch from pixels, frames and tokens of the prompt, by the rule of a model's diffusion pipeline.

  symflops lengths sdxl --height 1024 --width 1024
  symflops lengths wan --frames 81 --height 480 --width 832 --batch 4
  symflops lengths flux --pipeline kontext

It prints the batch as JSON, which --batch of other commands takes. PIPELINES.md has the rules.
"""

from __future__ import annotations

import argparse
import json

from symflops.cli.terminal import BATCH, CONFIG, SPEC_OR_CONFIG, arguments_of
from symflops.support.errors import SymflopsError

configure = arguments_of(SPEC_OR_CONFIG, CONFIG, BATCH)


def run(args: argparse.Namespace) -> int:
    """Print the batch that a command line describes; return the exit code 0."""
    from symflops.cli.amounts import chosen_batch
    from symflops.library.lookup import by_config, interpreter, read_config

    if not args.spec and not args.config:
        raise SymflopsError("say which model: a SPEC, or --config PATH")
    config = read_config(args.config) if args.config else {}
    model = interpreter(args.spec or by_config(config)[1], config)
    batch = chosen_batch(args, model, images=True)
    model.moments(**batch)
    print(json.dumps(batch))
    return 0
