"""Reads amounts of a command line: rates, shares, and the batch, also from pixels and frames."""

from __future__ import annotations

from symflops.cli.terminal import of_batch, tell
from symflops.evaluate.batch_text import MOST_DIGITS, MOST_ITEMS, amount, batch_of, whole
from symflops.support.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

IMAGES = {"height": "height", "width": "width", "frames": "frames", "prompt": "tokens"}
"""Options that say how large a sample is -> their names in the rules of pipelines."""


def counted(text: str, name: str) -> int:
    """Parse a number of pixels, frames or tokens as :func:`whole`, without prefixes: ``480p`` is no number of peta.

    Raises:
        SymflopsError: the text is no whole number, or has a letter.
    """
    if text.strip()[-1:].isalpha():
        raise SymflopsError(f"{name} is a whole number without a unit, not '{text[:MOST_DIGITS]}'")
    return whole(text, name)


def rate(text: str, name: str) -> float:
    """Parse a positive number as :func:`amount`.

    Raises:
        SymflopsError: the text is no positive number.
    """
    value = float(amount(text, name))
    if not value:
        raise SymflopsError(f"{name} is above 0, not '{text[:MOST_DIGITS]}'")
    return value


def share(text: str, name: str) -> float:
    """Parse a share: ``40%`` or ``0.4``.

    Raises:
        SymflopsError: the text is no number, or not above 0 and at most 1.
    """
    percent = text.rstrip().endswith("%")
    value = float(amount(text.rstrip().removesuffix("%"), name)) / (100 if percent else 1)
    if not 0 < value <= 1:
        told = f": write {text.strip()}%" if not percent and 1 < value <= 100 else ""
        raise SymflopsError(f"{name} is a share, above 0 and at most 1, e.g. 40% or 0.4, not {text[:MOST_DIGITS]}{told}")
    return value


def chosen_batch(args: argparse.Namespace, model: Any, quiet: bool = False, images: bool = False) -> dict[str, Any]:
    """The batch of a command line for an estimator; a typical one, with a message unless ``quiet``, if it gives none.

    With ``images``, ``--batch`` is a number of samples even if their size is not given.

    Raises:
        SymflopsError: the batch or the size of the images cannot be read, or the model has no rule for images.
    """
    given = {name: counted(text, f"--{option}") for option, name in IMAGES.items() if (text := getattr(args, option, None))}
    from symflops.library.pipelines import rules

    pipeline, guided = getattr(args, "pipeline", None) or "", getattr(args, "guidance", False)
    if given or pipeline or images:
        batch = of_images(model, given, pipeline, args.batch or "1")
    elif args.batch:
        sized = any(rule["spec"] == model.name for rule in rules().values())
        otherwise = ", or give the size of a sample with --height and --width" if sized else ""
        batch = batch_of(args.batch, model.stored.streams, tell, otherwise)
    else:
        from symflops.analysis.explanation import default_batch

        batch = default_batch(model)
        if not quiet:
            tell(f"no --batch is given: the figures are of the {of_batch(batch)}")
    return doubled(batch, model.stored.streams) if guided else batch


def given_for_batch(args: argparse.Namespace) -> list[str]:
    """List the options of a command line that say what its batch is."""
    return [f"--{name}" for name in ("batch", *IMAGES, "pipeline", "guidance") if getattr(args, name, None)]


def samples_in(batch: dict[str, Any]) -> int:
    """The number of samples of a batch: the entries of its first list."""
    lists = (items.get("lengths") if isinstance(items, dict) else items for items in batch.values())
    return next((len(items) for items in lists if isinstance(items, list)), 0)


def of_images(model: Any, given: dict[str, int], pipeline: str, samples: str) -> dict[str, Any]:
    """A batch of equal samples by the rule of a pipeline.

    Raises:
        SymflopsError: the model has no rule, one side is given alone, or ``samples`` is no number.
    """
    from symflops.library.pipelines import lengths_of, rule_for, rules

    rule = rule_for(model, pipeline)
    if rule is None:
        known = ", ".join(dict.fromkeys(rule["spec"] for rule in rules().values()))
        raise SymflopsError(f"no rule turns pixels into lengths of '{model.name}': give lengths with --batch (rules: {known})")
    count = whole(samples, "with the size of a sample, --batch")
    if not 0 < count <= MOST_ITEMS:
        raise SymflopsError(f"a batch has 1 to {MOST_ITEMS:,} samples, not {count:,}")
    options = {name: option for option, name in IMAGES.items()}
    if len(given.keys() & {"height", "width"}) == 1 and {"height", "width"} <= rule["given"].keys():
        raise SymflopsError("a picture has two sides: give --height and --width")
    needless = [f"--{options[name]}" for name in given if name not in rule["given"]]
    if needless:
        takes = ", ".join(f"--{options[name]}" for name in rule["given"] if name in options)
        raise SymflopsError(f"this pipeline has no {needless[0]}: it takes {takes}")
    return {stream: [entry] * count for stream, entry in lengths_of(rule, given).items()}


def doubled(batch: dict[str, Any], streams: Any) -> dict[str, Any]:
    """A batch with each sample twice, as guidance runs the model with and without the prompt."""
    counted = {stream.name for stream in streams if stream.counts}

    def twice(name: str, items: Any) -> Any:
        if isinstance(items, dict):
            return {side: twice(name, lengths) for side, lengths in items.items()}
        return items * 2 if isinstance(items, list) or name in counted else items

    return {name: twice(name, items) for name, items in batch.items()}
