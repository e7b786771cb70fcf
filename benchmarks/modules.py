"""Forward FLOPs of forty small modules by arithmetic, by ``symflops.trace``, and by five other tools.

    pip install calflops fvcore torchinfo ptflops
    python benchmarks/modules.py [--only NAME ...] [--without-trace]

Each module is made by hand, and so is the number of its multiply-adds; a FLOP count is twice that number. calflops and
PyTorch's counter print FLOPs; fvcore, torchinfo and ptflops print multiply-adds, which are doubled here. A cell says ``=``, or
how far a tool is off; ``0`` and ``fails`` are what they say. Each tool runs its own forward pass in training mode on the CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from handmade import CASES, Calls, Case
from torch import nn

from symflops.verify.limits import in_process


def pytorch(model: nn.Module, args: tuple[Any, ...]) -> float:
    """FLOPs by PyTorch's counter."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as found:
        model(*args)
    return found.get_total_flops()


def calflops(model: nn.Module, args: tuple[Any, ...]) -> float:
    """FLOPs by calflops."""
    from calflops import calculate_flops

    return calculate_flops(model=model, args=list(args), print_results=False, output_as_string=False)[0]


def fvcore(model: nn.Module, args: tuple[Any, ...]) -> float:
    """Twice the multiply-adds by fvcore, which it calls flops."""
    from fvcore.nn import FlopCountAnalysis

    return 2 * FlopCountAnalysis(model, args).unsupported_ops_warnings(False).uncalled_modules_warnings(False).total()


def torchinfo(model: nn.Module, args: tuple[Any, ...]) -> float:
    """Twice the multiply-adds by torchinfo."""
    from torchinfo import summary

    return 2 * summary(model, input_data=args, verbose=0, device="cpu", mode="train").total_mult_adds


def ptflops(model: nn.Module, args: tuple[Any, ...]) -> float:
    """Twice the multiply-adds by ptflops, with the count of operators that it recommends."""
    from ptflops import get_model_complexity_info

    names = {f"argument{place}": one for place, one in enumerate(args)}
    outer = Calls(lambda self, **given: self.inner(*given.values()), inner=model)
    options = {"print_per_layer_stat": False, "as_strings": False, "backend": "pytorch"}
    return 2 * get_model_complexity_info(outer, (1,), input_constructor=lambda _: names, **options)[0]


TOOLS: dict[str, Callable[[nn.Module, tuple[Any, ...]], float]] = {
    "PyTorch": pytorch, "calflops": calflops, "fvcore": fvcore, "torchinfo": torchinfo, "ptflops": ptflops,
}  # fmt: skip


def traced(case: Case) -> tuple[float, str]:
    """Forward FLOPs of the trace, and the operators that it lists as not counted."""
    from symflops import trace

    found = trace(made(case.make), *made(case.inputs))
    return found.numbers["forward"], ", ".join(found.missed) if found.proven or case.gap else found.unproven


def made(make: Callable[[], Any]) -> Any:
    """A module or its inputs, the same ones each time."""
    torch.manual_seed(0)
    return make()


def cell(run: Callable[[], Any], expected: int) -> str:
    """How far a tool is off, in a cell."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found = in_process(run, 120, "a count")  # some tools leave PyTorch changed
        return "=" if found == expected else f"{found / expected - 1:+.1%}" if found else "0"
    except Exception:  # a tool that fails is a result
        return "fails"


def rows(names: list[str], with_trace: bool) -> Iterator[list[str]]:
    """Cells of each module."""
    for name in names or CASES:
        case = CASES[name]
        expected = 2 * case.products
        cells = [
            cell(lambda tool=tool, case=case: tool(made(case.make), copy.deepcopy(made(case.inputs))), expected)
            for tool in TOOLS.values()
        ]
        if with_trace:
            found, missed = traced(case)
            cells.insert(0, cell(lambda found=found: found, expected) + (f", lists `{missed}`" if missed else ""))
        yield [name, f"{expected:,}", *cells]


def main() -> None:
    """Print a table, and how often each tool is exact."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--without-trace", action="store_true", help="run the other tools alone")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    heads = ["module", "FLOPs", *([] if args.without_trace else ["trace"]), *TOOLS]
    found = []
    print(f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) - 1)}", sep="\n")
    for row in rows(args.only, not args.without_trace):
        found.append(row)
        print(f"| {' | '.join(row)} |", flush=True)
    exact = [sum(row[place] == "=" for row in found) for place in range(2, len(heads))]
    print(f"| exact of {len(found)} | | {' | '.join(map(str, exact))} |")


if __name__ == "__main__":
    main()
