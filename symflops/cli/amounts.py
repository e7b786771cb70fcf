"""Reads the amounts that people type: ``15T``, ``40%``, ``8192*8``, a batch in several forms, pixels and frames."""

from __future__ import annotations

import re

from symflops.cli.terminal import MOST_DIGITS, of_batch, tell
from symflops.support.errors import SymflopsError
from symflops.support.reading import parse_json, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from decimal import Decimal
    from typing import Any

PREFIXES = {"k": 3, "m": 6, "b": 9, "g": 9, "t": 12, "p": 15}
THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?")
BARE = re.compile(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)")
"""A key without quotation marks."""
IMAGES = {"height": "height", "width": "width", "frames": "frames", "prompt": "tokens"}
"""Options that say how large a sample is -> their names in the rules of pipelines."""
FORMS = "e.g. 8192, 8192*8, 4096,1024 or '{text: [8192]}'"
MOST_ITEMS = 1_000_000


def amount(text: str, name: str) -> Decimal:
    """Parse a number of at least 0, such as ``90k``, ``1.5T``, ``1e12``, ``15,000,000`` or the product ``8192*8``.

    Raises:
        SymflopsError: the text is no such number.
    """
    from decimal import Decimal, InvalidOperation, localcontext

    found = Decimal(1)
    try:
        with localcontext() as context:
            context.prec = 4 * MOST_DIGITS
            for factor in text.lower().split("*"):
                digits = factor.strip()
                power = PREFIXES.get(digits[-1:], 0)
                digits = digits[:-1].strip() if power else digits
                number = Decimal(digits.replace(",", "") if THOUSANDS.fullmatch(digits) else digits)
                if number.is_finite() and number.adjusted() > MOST_DIGITS:
                    raise SymflopsError(f"{name} has at most {MOST_DIGITS} digits, which '{text[:MOST_DIGITS]}' exceeds")
                if not number.is_finite() or number < 0:
                    raise InvalidOperation
                found *= number.scaleb(power)
    except InvalidOperation:
        raise SymflopsError(f"{name} takes a number, e.g. 1e12, 15T or 8192*8, not '{text[:MOST_DIGITS]}'") from None
    return found


def whole(text: str, name: str) -> int:
    """Parse a whole number as :func:`amount`, exactly.

    Raises:
        SymflopsError: the text is no whole number.
    """
    value = amount(text, name)
    if value.adjusted() > MOST_DIGITS or value != value.to_integral_value():
        raise SymflopsError(f"{name} is a whole number with at most {MOST_DIGITS} digits, not '{text[:MOST_DIGITS]}'")
    return int(value)


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


def batch_of(text: str, streams: Any = ()) -> dict[str, Any]:
    """Parse a batch: streams mapped to lengths.

    Args:
        text: JSON, also with keys that lack quotation marks, or a JSON list for one stream; ``@`` and the path of a JSON file;
            or lengths of one stream, of several as ``latent=64x64*2; prompt=77*2``. ``*N`` repeats a length.
        streams: The streams of the model, one of which a text without a name belongs to.

    Raises:
        SymflopsError: the text is no batch, or does not say which stream has the lengths.
    """
    text = text.strip()
    if text.startswith(("@", "{", "[", '"')):
        batch = read_json(text[1:]) if text.startswith("@") else parse_json(BARE.sub(r'\1"\2"\3', text), "the batch")
        if isinstance(batch, list) and streams:
            return {lone(streams): batch}
        if not isinstance(batch, dict):
            raise SymflopsError(f"a batch maps streams to lists of lengths, {FORMS}")
        return batch
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, lengths = part.partition("=")
        name = name.strip() if equals else lone(streams)
        if name in found:
            told = f"a comma is between items of a stream, {name}=4096,1024, and ; between streams, latent=4096*2; prompt=77*2"
            raise SymflopsError(f"the batch has '{name}' twice: {told}")
        text = (lengths if equals else part).strip()
        found[name] = [entry for word in text.split(",") for entry in entries(word)]
        number, star, times = text.partition("*")
        if THOUSANDS.fullmatch(number):
            items, whole_number = " and ".join(text.split(",")), f"{number.replace(',', '')}{star}{times}"
            tell(f"'{text}' is read as items of {items}; the number is {whole_number}")
    return found


def lone(streams: Any) -> str:
    """The stream that a text without names is about: the only one that a batch must have.

    Raises:
        SymflopsError: there are several.
    """
    needed = [stream.name for stream in streams if stream.given and not stream.optional and not stream.absent] or ["text"]
    if len(needed) > 1:
        named = "; ".join(f"{name}=LENGTHS" for name in needed)
        images = ", or give the size of a sample with --height and --width" if "latent" in needed else ""
        raise SymflopsError(f"this model has the streams {', '.join(needed)}: say '{named}'{images}")
    return str(needed[0])


def entries(word: str) -> list[Any]:
    """Parse entries of one stream: ``8192``, ``8192*8`` for eight of them, ``64x64`` for a length per axis.

    Raises:
        SymflopsError: the text is something else.
    """
    first, star, times = word.partition("*")
    if re.fullmatch(r"0\d+", first.strip()):
        raise SymflopsError(f"'{first.strip()}' is no length: a comma is between items, so 8,000 tokens are 8000 or 8k")
    row = [whole(length, "a length") for length in first.lower().split("x")]
    count = whole(times, "the number of items") if star else 1
    if count > MOST_ITEMS:
        raise SymflopsError(f"a batch has at most {MOST_ITEMS:,} items, not {count:,}")
    return [row if len(row) > 1 else row[0]] * count


def chosen_batch(args: argparse.Namespace, model: Any, quiet: bool = False, images: bool = False) -> dict[str, Any]:
    """The batch of a command line for an estimator; a typical one, with a message unless ``quiet``, if it gives none.

    With ``images``, ``--batch`` is a number of samples even if their size is not given.

    Raises:
        SymflopsError: the batch or the size of the images cannot be read, or the model has no rule for images.
    """
    given = {name: counted(text, f"--{option}") for option, name in IMAGES.items() if (text := getattr(args, option, None))}
    pipeline, guided = getattr(args, "pipeline", None) or "", getattr(args, "guidance", False)
    if given or pipeline or images:
        batch = of_images(model, given, pipeline, args.batch or "1")
    elif args.batch:
        batch = batch_of(args.batch, model.stored.streams)
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
