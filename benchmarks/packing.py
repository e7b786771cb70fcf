"""What balancing by exact cost gains over tokens and over sums of squares: ``python benchmarks/packing.py``.

A step has samples of drawn lengths. They go to ranks greedily: the largest first, each to the rank with the least so far.
Or they go into micro-batches with a limit of tokens, and these to ranks, as many to each. What is balanced is a proxy (tokens,
or squares) or the exact cost, ``per_sample`` of an estimator. The idle time of a step is what the slowest rank takes longer
than the average, as a share of the average, counted in FLOPs. The draw is seeded, so figures repeat.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from statistics import mean

from symflops.library.naming import estimator_of

RANKS, STEPS, MICRO_BATCHES = 16, 12, 4
SAMPLES = 512


@dataclass(frozen=True)
class Case:
    """Drawn samples: their exact cost, tokens and squares."""

    costs: list[int]
    tokens: list[int]
    squares: list[int]


def log_normal(draw: random.Random, median: int, spread: float, longest: int) -> int:
    """A length as those of instructions and documents are spread, cut at the longest one."""
    return max(1, min(longest, round(median * 2 ** (spread * sum(draw.uniform(-1, 1) for _ in range(6)) / 2**0.5))))


def documents(model: str, seed: int) -> Case:
    """A language model on documents."""
    draw = random.Random(seed)
    lengths = [log_normal(draw, 1500, 1.5, 32_768) for _ in range(SAMPLES)]
    costs = [int(cost) for cost in estimator_of(model).per_sample(text=lengths)]
    return Case(costs, lengths, [length**2 for length in lengths])


def pictures(seed: int) -> Case:
    """Qwen-Image on pictures of several sizes, with their prompts."""
    draw = random.Random(seed)
    sides = [draw.choice((256, 512, 768, 1024, 1328, 1664)) // 16 for _ in range(SAMPLES)]
    latent = [side * max(1, round(side * draw.choice((0.75, 1, 1, 4 / 3)))) for side in sides]
    prompt = [log_normal(draw, 90, 1.0, 1024) for _ in range(SAMPLES)]
    costs = [int(cost) for cost in estimator_of("qwen_image").per_sample(latent=latent, prompt=prompt)]
    tokens = [one + two for one, two in zip(latent, prompt, strict=True)]
    return Case(costs, tokens, [total**2 for total in tokens])


def conversations(seed: int) -> Case:
    """Qwen2-VL on text with up to three pictures, whose merged patches are tokens of the text, too."""
    draw, model = random.Random(seed), estimator_of("qwen2_vl")
    costs, tokens = [], []
    for _ in range(SAMPLES):
        grids = [[1, 2 * draw.randrange(8, 50), 2 * draw.randrange(8, 50)] for _ in range(draw.randrange(4))]
        text = log_normal(draw, 400, 1.3, 16_384) + sum(height * width // 4 for _, height, width in grids)
        found = model.per_item(text=[text], images=grids)
        costs.append(int(sum(cost for some in found.values() for cost in some)))
        tokens.append(text)
    return Case(costs, tokens, [total**2 for total in tokens])


def spread(weights: Sequence[int], places: int, limit: Callable[[int, list[int]], bool] | None = None) -> list[list[int]]:
    """Items in places of about equal weight: the largest first, each to the lightest place that may take it."""
    found: list[list[int]] = [[] for _ in range(places)]
    heap = [(0, place) for place in range(places)]
    heapify(heap)
    for item in sorted(range(len(weights)), key=lambda item: -weights[item]):
        refused = []
        while heap and limit is not None and not limit(item, found[heap[0][1]]):
            refused.append(heappop(heap))
        weight, place = heappop(heap) if heap else min(refused)
        refused = [one for one in refused if one[1] != place]
        found[place].append(item)
        heappush(heap, (weight + weights[item], place))
        for one in refused:
            heappush(heap, one)
    return found


def idle(ranks: Sequence[Sequence[int]], costs: Sequence[int]) -> float:
    """What the slowest rank takes longer than the average one."""
    totals = [sum(costs[item] for item in some) for some in ranks]
    return max(totals) * len(totals) / sum(totals) - 1


def in_ranks(case: Case, weights: Sequence[int]) -> float:
    """Samples to ranks at once."""
    return idle(spread(weights, RANKS), case.costs)


def in_bins(case: Case, weights: Sequence[int]) -> float:
    """Samples to micro-batches with a limit of tokens, and these to ranks, as many to each."""
    most = max(max(case.tokens), 5 * sum(case.tokens) // (4 * RANKS * MICRO_BATCHES))

    def fits(item: int, some: list[int]) -> bool:
        return case.tokens[item] + sum(case.tokens[one] for one in some) <= most

    bins = spread(weights, RANKS * MICRO_BATCHES, fits)
    of_bins = [sum(weights[item] for item in some) for some in bins]
    ranks = spread(of_bins, RANKS, lambda _, some: len(some) < MICRO_BATCHES)
    return idle([[item for place in some for item in bins[place]] for some in ranks], case.costs)


MODELS: Mapping[str, Callable[[int], Case]] = {
    "Llama 3 8B, documents": partial(documents, "llama3-8b"),
    "Gemma 3 4B, five windowed layers to a full one": partial(documents, "gemma3-4b-text"),
    "Qwen3 30B-A3B, documents": partial(documents, "qwen3-30b-a3b"),
    "Qwen2-VL 72B, text with pictures": conversations,
    "Qwen-Image 20B, pictures with prompts": pictures,
}


def table() -> str:
    """The idle time of each model and proxy, the mean over steps."""
    names = " | by squares | exactly | "
    lines = [f"| | ranks, by tokens{names}micro-batches, by tokens{names}".rstrip(), f"|:--|{'--:|' * 6}"]
    for title, draw in MODELS.items():
        steps, cells = [draw(seed) for seed in range(STEPS)], []
        for way in (in_ranks, in_bins):
            for weights in ("tokens", "squares", "costs"):
                cells.append(f"{mean(way(step, getattr(step, weights)) for step in steps):.1%}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(f"{STEPS} steps of {SAMPLES} samples on {RANKS} ranks, {MICRO_BATCHES} micro-batches each\n\n{table()}")
