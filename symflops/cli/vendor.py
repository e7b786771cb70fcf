"""Writes an estimator as a training framework asks a new model's author for it: code, a test with figures, and a page.

  symflops vendor sd3 wan --for verl-omni --out ../verl-omni
  symflops vendor gemma2 --for verl --config config.json --out ../verl
  symflops vendor llama --for torchtitan --read intermediate_size=layers[0].feed_forward.w1.out_features
  symflops vendor sd3 wan --for verl-omni --out ../verl-omni --check

The files lie where the project keeps such files, have its signature and its convention, and need no symflops. --check compares
them with what is derived: exit code 1 if one differs or is missing.
--config is a config of the model: of the figures in the test, and of the structure if a config decides that. --read says where
the project's config has a field of the spec, as a path; 'len:layers' is the length of a list.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from symflops.cli.terminal import REGIME, SET, argument, arguments_of
from symflops.support.errors import SymflopsError

PROJECTS = ("kempnerforge", "latte", "megatron-bridge", "torchtitan", "verl", "verl-omni")

configure = arguments_of(
    argument("specs", nargs="+", metavar="SPEC", help="names or paths of specs"),
    argument("--for", dest="project", required=True, choices=PROJECTS, metavar="PROJECT", help=", ".join(PROJECTS)),
    argument("-o", "--out", default=".", metavar="DIR", help="the root of the project's tree (default: here)"),
    argument("--config", metavar="PATH", help="config.json, or a folder with one; default: the sizes of the spec"),
    SET,
    argument("--read", action="append", metavar="FIELD=PATH", help="where the project's config has a field; may be repeated"),
    REGIME,
    argument("--convention", default="", metavar="C", help="what is counted (default: the project's own convention)"),
    argument("--force", action="store_true", help="replace files that symflops did not write"),
    argument("--check", action="store_true", help="compare with what is there, write nothing"),
)


def run(args: argparse.Namespace) -> int:
    """Write estimators for another project, or compare them with the files in the project's tree.

    Return the exit code: 1 if a file differs.
    """
    from symflops.cli.actions.vendor import Order, drifted, save, vendored

    config = config_of(args)
    words = {}
    for text in args.read or ():
        name, equals, path = text.partition("=")
        if not equals:
            raise SymflopsError(f"--read is FIELD=PATH, such as num_hidden_layers=len:layers, not '{text}'")
        words[name.strip()] = path.strip()
    texts: dict[str, str] = {}
    for spec, name in zip(args.specs, args.named, strict=True):
        texts |= vendored(
            spec, args.project, Order(args.regime, args.convention, config, words, command(args, name.asked or spec))
        )
    out = Path(args.out)
    if args.check:
        findings = drifted(texts, out)
        print(
            "\n".join([*findings, f"{len(texts) - len(findings)} of {len(texts)} files agree with what is derived"]),
            file=sys.stderr,
        )
        return 1 if findings else 0
    written = save(texts, out, args.force)
    print("\n".join(str(out / name) for name in texts))
    print(f"{len(texts)} files, {written} of them new or changed; each page says what to add to the tree", file=sys.stderr)
    return 0


def config_of(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the config of a command line: that of ``--config``, or of a published model, as ``--set`` changes it.

    Raises:
        SymflopsError: a config is given twice, or is of several models.
    """
    from symflops.library.lookup import read_config
    from symflops.library.settings import changed, settings_in

    whole = [found for found in args.named if found.whole]
    if (whole or args.set) and (len(args.specs) > 1 or (whole and args.config)):
        raise SymflopsError(
            "a config is of one model: name one SPEC at a time, and no --config with the name of a published model"
        )
    config = whole[0].config if whole else read_config(args.config) if args.config else None
    return changed(args.specs[0], config or {}, settings_in(args.set)) if args.set else config


def command(args: argparse.Namespace, spec: str) -> str:
    """Return the command line that writes the files of ``spec`` again, without local paths."""
    words = ["symflops", "vendor", Path(spec).name, "--for", args.project]
    words += ["--regime", args.regime] * (args.regime != "full") + ["--convention", args.convention] * bool(args.convention)
    words += ["--config", Path(args.config).name] if args.config else []
    words += [word for text in args.set or () for word in ("--set", text)]
    words += [word for text in args.read or () for word in ("--read", text)]
    return shlex.join(words)
