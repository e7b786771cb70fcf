"""Arguments of commands as values: each command lists its own, and common ones are declared once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    Argument = Callable[[Any], object]


MOST_DIGITS = 40


def argument(*names: str, **options: Any) -> Argument:
    """Declare an argument with the parameters of :meth:`argparse.ArgumentParser.add_argument`."""
    return lambda parser: parser.add_argument(*names, **options)


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    """Group arguments of which a command line may have only one; if ``required``, it must have one."""
    return lambda parser: arguments_of(*arguments)(parser.add_mutually_exclusive_group(required=required))


def arguments_of(*arguments: Argument) -> Callable[[argparse.ArgumentParser], None]:
    """Build the ``configure`` function of a command, which adds its arguments to a parser."""

    def configure(parser: argparse.ArgumentParser) -> None:
        for add in arguments:
            add(parser)

    return configure


SPEC = argument("spec", metavar="SPEC", help="name or path of a spec")
SPEC_OR_CONFIG = arguments_of(
    argument("spec", nargs="?", metavar="SPEC", help="name or path of a spec; default: found from the config"),
    argument("--lenient", action="store_true", help="let a config without a class have numbers that nothing reads"),
)
SPECS = argument("specs", nargs="*", metavar="SPEC", help="names or paths; default: all")
CONFIG = argument("--config", metavar="PATH", help="config.json, model_index.json, a folder with one, or JSON")
STRUCTURE = argument("--config", metavar="PATH", help="a page for this config: its conditions are decided")
ASSUME = argument("--assume", default="", metavar="N=V,..", help='sizes to put into formulas, e.g. "qk_norm=null, K=0"')
NUMERIC = argument("--numeric", action="store_true", help="formulas with numbers: of --config, or of the defaults")
BATCH = argument("--batch", metavar="JSON|@FILE", help="default: one item per stream, of typical lengths")
REGIME = argument("--regime", default="full", metavar="R", help="what trains (default: full)")
CONVENTION = argument("--convention", default="symflops", metavar="C", help="what is counted (default: symflops)")
UNIT = argument(
    "--unit", default="flops", choices=("flops", "macs"), help="a MAC is two FLOPs; norms and activations have none"
)
OVER = argument("--over", metavar="STREAM", help="the stream whose items grow in the picture (default: the first)")
JSON = argument("--json", action="store_true", help="print a JSON object")


def whole(text: str, name: str) -> int:
    """Parse a whole number such as ``1e21`` or ``2_000`` exactly.

    Raises:
        SymflopsError: the text is no whole number.
    """
    from decimal import Decimal, InvalidOperation

    from symflops.support.errors import SymflopsError

    try:
        value = Decimal(text)
    except InvalidOperation:
        raise SymflopsError(f"{name} takes a number, e.g. 1e21, not '{text[:MOST_DIGITS]}'") from None
    if not value.is_finite() or value.adjusted() > MOST_DIGITS or value < 0 or value != value.to_integral_value():
        raise SymflopsError(f"{name} is a whole number with at most {MOST_DIGITS} digits, not '{text[:MOST_DIGITS]}'")
    return int(value)
