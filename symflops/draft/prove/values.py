"""Proves a draft on random tensor values, if shapes in the module depend on values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from symflops.draft.limits import attempt
from symflops.draft.prove.points import batch_of, within_time
from symflops.draft.prove.prove import VALUES, Proof, Prover
from symflops.draft.study import Study
from symflops.draft.trace.subject import Subject
from symflops.draft.trace.tape import taped
from symflops.draft.write.draft_document import Document
from symflops.verify.tensors import needed

DRAWS = 3
FEWEST_WORDS = 2
BUILDING, RUNNING = 20.0, 40.0  # seconds


def asked_of(subject: Subject) -> list[str]:
    """Names of the operators of a module whose output shape or result depends on tensor values."""
    tape = attempt(lambda: taped(subject)[2])
    return sorted(name for name, device in (tape.by_value if tape else ()) if device == subject.device)


def value_proofs(prover: Prover, document: Document, study: Study) -> Iterator[Proof]:
    """Proofs of full training on random values on the CPU; none if no operator depends on values."""
    asked = asked_of(study.subject)
    if not asked:
        return
    subject = replace(study.subject, device="cpu")
    label = f"drawn values ({', '.join(asked)} depend on them)"
    lengths, items = batch_of(document, study, {})
    ran = False
    for seed in range(DRAWS):
        arguments = drawn(subject, seed)
        if arguments is None or not accepted(subject, arguments):
            continue
        ran = True
        proof = within_time(prover, label, subject, lengths, items, arguments)
        yield replace(proof, kind=VALUES, of=study.name)
        if not proof.exact:
            return
    if not ran:
        yield Proof(label, 1, ["the module does not run on them: what it does with values is guessed"], VALUES, study.name)


def drawn(subject: Subject, seed: int) -> dict[str, Any] | None:
    """Call arguments with random values; None if the module cannot be built."""
    torch = needed("torch")
    real = attempt(subject.build, BUILDING)
    if real is None:
        return None
    tables = [module.num_embeddings for module in real.modules() if isinstance(module, torch.nn.Embedding)]
    words = max(FEWEST_WORDS, min(tables, default=FEWEST_WORDS)) if seed else FEWEST_WORDS
    generator = torch.Generator().manual_seed(seed)
    made = subject.arguments()
    return {name: filled(value, made[name], words, generator) for name, value in subject.inputs.items()}


def filled(description: Any, made: Any, words: int, generator: Any) -> Any:
    """Argument with random values where its description has only a shape; masks of ones are unchanged."""
    torch = needed("torch")
    if isinstance(description, Mapping) and "shape" in description:
        if "(" in str(description.get("dtype", "")):
            return made
        if made.is_floating_point() or made.is_complex():
            return torch.randn(made.shape, generator=generator, dtype=made.dtype)
        return torch.randint(0, 2 if made.dtype is torch.bool else words, made.shape, generator=generator).to(made.dtype)
    if isinstance(description, Mapping) and "value" not in description:
        return {name: filled(item, made[name], words, generator) for name, item in description.items()}
    if isinstance(description, (list, tuple)):
        return [filled(item, one, words, generator) for item, one in zip(description, made, strict=True)]
    return made


def accepted(subject: Subject, arguments: Mapping[str, Any]) -> bool:
    """Whether the module runs on ``arguments``."""

    def run() -> bool:
        with needed("torch").no_grad():
            subject.build()(**arguments)
        return True

    return attempt(run, RUNNING) or False
