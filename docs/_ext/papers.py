"""The gallery of architectures from papers: what each is, its pairs, and its cost beside the dense model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from operators import written

from symflops.api import Model, load
from symflops.catalog.library import shipped, specs_in
from symflops.model.regime import Regime

LENGTHS = (1024, 8192, 65536, 1048576)
LEAST, MOST, LONGEST_FORMULA = 64, 2**24, 450
TEXT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "cross_layer_attention", "hyena", "hymba", "mixture_of_block_attention", "native_sparse_attention", "reformer",
            "ttt_linear",
        ),
        "dense_decoder",
    ),
    **dict.fromkeys(("bigbird", "linformer"), "dense_encoder"),
}
"""What an architecture over text is compared with, at its own sizes."""
Step = Callable[[int], int]


def papers() -> str:
    """A section for each spec of the group that names a witness."""
    names = (file.name for file in specs_in(shipped("specs"), "papers"))
    return "\n\n".join("\n\n".join(section(name)) for name in names if loaded(name).spec.references)


@cache
def loaded(name: str) -> Model:
    """The spec of that name."""
    return load(next(file for file in specs_in(shipped("specs"), "papers", name)))


def section(name: str) -> Iterator[str]:
    """What it is, its sources, its pairs, and its cost over the length."""
    model = loaded(name)
    title, _, idea = model.spec.title.partition(", ")
    yield f"## {title}"
    remarks = (line.removeprefix("# ") for line in model.file.path.read_text("utf-8").splitlines() if line.startswith("# "))
    source, *others = [line for line in remarks if "yaml-language-server" not in line]
    yield f"{idea[0].upper()}{idea[1:]}. {' '.join(others)}".strip()
    yield f"Source: {source}"
    files = f"[The spec](../specs/papers/{name}.yaml) · [the witness](../specs/papers/{name}.py)"
    yield f"{files} · `symflops explain {name}` · `symflops graph {name}`"
    rows = dict.fromkeys(pairs(model))
    yield "\n".join(["| Attention | Useful pairs of one layer |", "|:--|:--|", *rows]) if rows else "It has no pairs of tokens."
    if name in TEXT:
        yield from compared(name)


def pairs(model: Model) -> Iterator[str]:
    """A row for each kind of attention: its path, and the pairs of a query and a key."""
    for work in model.derivation(Regime("gallery"), "torch", {}).work:
        contraction = work.contraction
        if contraction.name.startswith("scores"):
            path = ".".join(part for part in str(work.operator.path).split(".") if not part.isdigit() and part != "*")
            formula = written(contraction.extent.useful)
            shown = f"`{formula}`" if len(formula) <= LONGEST_FORMULA else "in closed form, too long for a line"
            each = "" if contraction.items == "samples" else f", for each of {contraction.items}"
            yield f"| `{path}`{each} | {shown} |"


def compared(name: str) -> Iterator[str]:
    """The FLOPs of a step beside those of the dense model of the same sizes, and from which length on they are fewer."""
    own, base = step(loaded(name), {}), step(loaded(TEXT[name]), shared(name))
    cells = " | ".join(f"{own(n) / base(n):.3f}" for n in LENGTHS)
    head = " | ".join(f"{n:,} tokens" for n in LENGTHS)
    yield "\n".join(
        (
            f"| FLOPs of a step, over those of `{TEXT[name]}` | {head} |",
            f"|:--|{'--:|' * len(LENGTHS)}",
            f"| at the defaults | {cells} |",
        )
    )
    first = crossover(own, base)
    yield {
        LEAST: f"It costs less from {LEAST} tokens on, or earlier.",
        None: f"It never costs less, up to {MOST:,} tokens.",
    }.get(first, f"It costs less from about {first or 0:,} tokens on.")


def shared(name: str) -> dict[str, Any]:
    """The config of the dense model: the defaults of the architecture where both have a field."""
    known = {key for size in loaded(TEXT[name]).spec.sizes for key in size.keys}
    model = loaded(name)
    return {size.keys[0]: model.value_of(size, {}) for size in model.spec.sizes if size.keys and size.keys[0] in known}


def step(model: Model, config: Mapping[str, Any]) -> Step:
    """FLOPs of a step of full training on one text, useful work."""
    estimator = model.estimator(config, "full", "symflops")
    return cache(lambda n: estimator.total(estimator.moments(text=[n])))


def crossover(own: Step, base: Step) -> int | None:
    """From which length on ``own`` is below ``base``, in steps of LEAST."""
    low, high = 0, LEAST
    while own(high) >= base(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > LEAST:
        middle = (low + high) // 2 // LEAST * LEAST
        low, high = (low, middle) if own(middle) < base(middle) else (middle, high)
    return high
