"""Splits work by whether PyTorch's counter sees it: of some contractions it sees one gradient and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

from sympy import Integer

from symflops.derive.token_loops import executions
from symflops.model.derivation import Work


def sides(work: Work) -> list[Work]:
    """``work``, split in two if PyTorch's counter misses some of its gradients; the forward pass stays with its kind."""
    own = [operand.seen in (None, work.contraction.seen) for operand in work.contraction.operands]
    if all(own):
        return [work]
    other = _side(work, [not mine for mine in own])
    contraction = replace(other.contraction, seen=not work.contraction.seen)
    other = replace(other, contraction=contraction, forward=Integer(0), recomputed=Integer(0))
    return [_side(work, own), *([other] if any(count != 0 for count in executions(other)) else [])]


def _side(work: Work, kept: Sequence[bool]) -> Work:
    operands = tuple(compress(work.contraction.operands, kept))
    return replace(
        work, contraction=replace(work.contraction, operands=operands), gradients=tuple(compress(work.gradients, kept))
    )
