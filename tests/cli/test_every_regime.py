"""Every command that takes a regime ends in an answer or a diagnostic under every regime and convention of the library."""

from __future__ import annotations

import itertools

import pytest

from symflops.cli.main import main
from symflops.read.spec_files import chosen_specs, pages
from tests.sampling import sampled

COMMANDS = (("explain",), ("render", "--format", "markdown"), ("render", "--format", "latex"), ("compare",))
REGIMES = pages("regimes")
CONVENTIONS = pages("conventions")
SPECS = sorted(file.name for file in chosen_specs([]))


def drawn():
    """Every regime and every convention with every command, each on the next specs."""
    specs = itertools.cycle(["llama", *SPECS[::7]])
    for command, regime in itertools.product(COMMANDS, REGIMES):
        yield command, next(specs), ("--regime" if command[0] != "compare" else "--regimes", regime)
    for command, convention in itertools.product(COMMANDS, CONVENTIONS):
        yield command, next(specs), ("--convention" if command[0] != "compare" else "--conventions", convention if command[0] != "compare" else f"torch,{convention}")


@pytest.mark.parametrize(("command", "spec", "choice"), sampled(list(drawn()), 24, 8))
def test_it_answers_or_says_why_not(command, spec, choice, capsys):
    code = main([command[0], spec, *command[1:], *choice])
    printed = capsys.readouterr()
    assert code in (0, 1, 2) and "internal fault" not in printed.err, printed.err
    assert printed.out if code == 0 else printed.err
