"""Modules that pad lengths to chunks of a fixed size: a draft starts from several chunks, as one alone tells nothing."""

from __future__ import annotations

from symflops.draft.limits import attempt
from symflops.draft.trace.subject import Subject
from symflops.draft.trace.tape import taped
from symflops.draft.vary.numbers import applied, slots_of

CHUNKS = 8
FEWEST_IN_CHUNK = 16


def lengthened(subject: Subject) -> Subject:
    """The subject with inputs of several chunks if its module pads them to a longer chunk; else the subject itself."""
    slots = slots_of(subject.config, subject.inputs)
    lengths = [slot for slot in slots if slot.kind == "dimension" and slot.key[-1] == 1]
    if not lengths or len({slot.value for slot in lengths}) > 1:
        return subject
    chunks = {size for size in square_sides(subject) if size >= FEWEST_IN_CHUNK} - {slot.value for slot in slots}
    longer = [size for size in chunks if size > lengths[0].value]
    if len(longer) != 1:
        return subject
    found = subject.having(*applied(subject.config, subject.inputs, dict.fromkeys(lengths, CHUNKS * longer[0])))
    return found if longer[0] in square_sides(found) else subject


def square_sides(subject: Subject) -> set[int]:
    """The sides of square products of two values, as scores within a chunk are; empty if the module does not run."""
    found = attempt(lambda: taped(subject)[2].nodes)
    nodes = found or []
    parameters = {node.id for node in nodes if node.kind == "parameter"}
    return {
        node.sizes[1]
        for node in nodes
        if node.kind == "matmul" and node.sizes[1] == node.sizes[3] and not parameters & set(node.operands[:2])
    }
