"""Lengths that a module pads to chunks of a fixed size: a draft starts from one of several chunks, else it knows one alone."""

from __future__ import annotations

from symflops.draft.fit.symbols import FEWEST_IN_CHUNK
from symflops.draft.trace.subject import Subject, summed
from symflops.draft.trace.tape import Tape, record
from symflops.draft.vary.variables import applied, slots_of
from symflops.witness.tensors import needed

CHUNKS = 8


def lengthened(subject: Subject) -> Subject:
    """The subject with inputs of several chunks, where it works in chunks longer than they are; else as it is."""
    slots = slots_of(subject.config, subject.inputs)
    known = {slot.value for slot in slots}
    lengths = [slot for slot in slots if slot.kind == "dimension" and slot.key[-1] == 1]
    if not lengths or len({slot.value for slot in lengths}) > 1:
        return subject
    tape = taped(subject)
    chunks = {size for size in squares(tape) if size >= FEWEST_IN_CHUNK and size not in known} if tape else set()
    short = [size for size in chunks if size > lengths[0].value]
    if len(short) != 1:
        return subject
    longer = subject.having(*applied(subject.config, subject.inputs, dict.fromkeys(lengths, CHUNKS * short[0])))
    again = taped(longer)
    return longer if again is not None and short[0] in squares(again) else subject


def taped(subject: Subject) -> Tape | None:
    """The tape of a subject; None where it does not run."""
    try:
        model, arguments = subject.build(), subject.arguments()
        needed("torch").manual_seed(0)
        return record(model, arguments, summed)
    except Exception:  # whatever a module raises, it does not take these lengths
        return None


def squares(tape: Tape) -> set[int]:
    """The sides of square results of products of two values, as the scores within a chunk are."""
    owned = {node.id for node in tape.nodes if node.kind == "parameter"}
    return {
        node.sizes[1]
        for node in tape.nodes
        if node.kind == "matmul" and node.sizes[1] == node.sizes[3] and not owned & set(node.operands[:2])
    }
