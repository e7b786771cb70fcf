"""Compares what PyTorch executed in a step with the work of an estimator, module by module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from symflops.evaluate.lengths import entry_of
from symflops.training.introspect.tree import starred
from symflops.training.meter.parts import is_within
from symflops.training.meter.witness import OUTER, Witness

ENOUGH = 0.95
"""Share of the executed FLOPs that must have been compared for the word *proven*."""
KINDS = ("forward", "backward", "recomputed")

Work = Mapping[tuple[tuple[str, ...], str], int]
"""(modules that run, kind of work) -> FLOPs."""


def work_of(
    estimator: Any, streams: Mapping[str, Any], parts: Iterable[int], inside: str = "", without: str = ""
) -> Counter[tuple[tuple[str, ...], str]]:
    """FLOPs of a call by (modules that run, kind), for how often each kind runs; waits for a device.

    ``inside`` is the part of the model that runs, empty for all of it, and ``without`` a part that does not.
    """
    moments = estimator.moments(**{name: entry_of(entry) for name, entry in streams.items()})
    found: Counter[tuple[tuple[str, ...], str]] = Counter()
    for line, flops in estimator._work(moments):
        if not is_within(line.within, inside) or (without and is_within(line.within, without)):
            continue
        for kind, times in zip(KINDS, parts, strict=True):
            found[line.within, kind] += flops * times * getattr(line, kind)
    return found


class Verdict:
    """Executed work of a model beside that of its estimator.

    Args:
        number: The number of the model.
        witness: What was executed.
        derived: The work of the estimator.
        rows: The same if packs are whole rows, as a kernel that masks packs computes them.
        head: The path of the module that computes logits.
        older: Whether the model has modules of another version of its class than the estimator.
        units: Paths, with ``*`` for indices, of modules that are compared as a whole, because their parts run for each other.

    Attributes:
        modules: Number of modules that did work.
        differences: A sentence for each difference.
        unseen: Module -> why its work is not compared: an operator without a formula, a fused head, or outer products.
        beside: FLOPs of outer products that are not counted.
        total, missed: FLOPs that ran or are counted, and those of them that were not compared.
    """

    def __init__(
        self, number: int, witness: Witness, derived: Work, rows: Work | None, head: str, units: Collection[str], older: bool
    ) -> None:
        real = {(place[1], kind): flops for (place, kind), flops in witness.seen.items() if place[0] == number}
        self.modules = len({stack[-1] if stack else "" for stack, _ in real})
        names = {starred(path) for mine, path in witness.runs if mine == number}
        known = sorted({starred(path) for stack, _ in derived for path in stack}, key=len, reverse=True) if older else None
        one, two = rolled(real, names, units, known), rolled(derived, names, units)
        masked = two if rows is None else rolled(rows, names, units)
        keys = [key for key in one.keys() | two.keys() if key[1] in KINDS]
        places = {key[0] for key in keys if one[key] not in (two[key], masked[key])}
        self.notes = ["packs ran as whole rows"] if any(one[key] != two[key] and key[0] not in places for key in keys) else []
        blind = {starred(place[1][-1]): name for name, place in witness.foreign.items() if place[0] == number and place[1]}
        self.unseen, self.differences, self.beside = dict[str, str](), list[str](), 0
        for path in sorted(places):
            if any(inside(other, path) for other in places):  # told of the inner one
                continue
            figures = {kind: (one[path, kind], two[path, kind]) for kind in KINDS}
            outer = Counter(forward=one[path, OUTER])
            kernel = next((name for place, name in blind.items() if place == path or inside(place, path)), None)
            if kernel is not None and all(ran <= due for ran, due in figures.values()):
                self.unseen[path] = f"no formula counts {kernel}"
            elif path == head and path not in names:
                self.unseen[path] = f"the loss is fused with {head}"
            elif all(ran - due == outer[kind] for kind, (ran, due) in figures.items()):
                self.unseen[path] = f"{outer.total():,} FLOPs of {path} are outer products, which are not counted"
                self.beside += outer.total()
            else:
                single = {
                    stack[-1]: flops
                    for (stack, kind), flops in real.items()
                    if kind == "forward" and stack and starred(stack[-1]) == path
                }
                self.differences.append(cause(path, figures, single))
        self.total = sum(two["", kind] for kind in KINDS) + self.beside
        self.missed = sum(abs(two[path, kind] - one[path, kind]) for path in self.unseen for kind in KINDS)


def cause(path: str, figures: Mapping[str, tuple[int, int]], single: Mapping[str, int]) -> str:
    """Say why a module's executed work is not what was counted.

    Args:
        path: The path of the module, with ``*`` for indices.
        figures: Kind of work -> (executed, counted) FLOPs.
        single: Executed forward FLOPs of each module that the path stands for.
    """
    usual = min(single.values(), default=0)
    odd = [name for name, flops in single.items() if flops != usual]
    name = odd[0] if len(odd) == 1 else path or "the model"
    ran, due = figures["forward"]
    if ran != due:
        once, whole = (usual, single[name]) if name in single else (due, ran)
        if once and whole > once and not whole % once:
            return f"{name} ran {whole // once} times as often as counted"
        return f"{name} executed {ran:,} FLOPs forward, {due:,} were counted"
    ran, due = figures["backward"]
    if ran != due:
        why = "a gradient ran that was not counted" if ran > due else "a gradient was counted that did not run"
        return f"{name}: {why} ({ran:,} FLOPs backward, {due:,} were counted)"
    ran, due = figures["recomputed"]
    return f"{name} recomputed {ran:,} FLOPs, {due:,} were counted"


def rolled(
    work: Work, names: Iterable[str], units: Collection[str] = (), known: Collection[str] | None = None
) -> Counter[tuple[str, str]]:
    """Add up work by (path, kind), each module with those inside it; paths have ``*`` for indices, that of the model is empty.

    Modules that are not among ``names`` count only if they do work themselves, those inside of one of ``units`` as that, and
    those that are not among ``known`` as the next module around them that is.
    """
    named = set(names)
    found: Counter[tuple[str, str]] = Counter()
    for (stack, kind), flops in work.items():
        stars = [next((one for one in units if inside(path, one)), path) for path in map(starred, stack)]
        if known is not None:
            stars = [next((one for one in known if path == one or inside(path, one)), "") for path in stars]
        for path in {"", *(one for one in stars if one in named), *stars[-1:]}:
            found[path, kind] += flops
    return +found


def inside(path: str, outer: str) -> bool:
    """Whether a module's path lies inside that of another module."""
    return path != outer and (not outer or path.startswith(f"{outer}."))


def sentence(verdicts: Iterable[Verdict], outside: Any = None) -> tuple[str, bool]:
    """The line about a proof, and whether rates may be logged; ``outside`` is what ran outside of watched calls."""
    found = list(verdicts)
    wrong = [text for one in found for text in one.differences]
    wrong += outside.differences() if outside is not None else []
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        return f"what ran is not what was counted: {'; '.join(wrong[:3])}{more}", False
    modules, executed = sum(one.modules for one in found), sum(one.total for one in found)
    compared = executed - sum(one.missed for one in found)
    unseen = sorted({why for one in found for why in one.unseen.values()})
    if outside is not None:
        executed, unseen = executed + outside.flops, [*unseen, *outside.notes()]
    share = compared / executed if executed else 1.0
    word = "proven" if share >= ENOUGH and not (outside is not None and outside.hidden) else "compared"
    notes = [*[f"{100 * share:.1f} % of its FLOPs"] * bool(unseen), *unseen, *sorted({n for one in found for n in one.notes})]
    note = f" ({'; '.join(notes)})" if notes else ""
    return f"{word} on the first step{note}: {modules} of {modules} modules, 0 FLOPs apart", True
