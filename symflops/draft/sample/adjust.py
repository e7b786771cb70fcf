"""Adjusts a subject before sampling: its number of levels, and the length of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.draft.limits import attempt
from symflops.draft.trace.subject import Subject, full_config
from symflops.draft.trace.tape import taped
from symflops.draft.vary.slots import applied, slots_of

CHUNKS = 8
FEWEST_IN_CHUNK = 16


def levelled(subject: Subject, published: Sequence[Subject]) -> Subject:
    """The first published subject if its per-level lists have another length, else ``subject`` itself.

    Per-level lists are two or more lists that share one length in the subject and another one in the published config. A
    published config that does not build is ignored here, and fails in its proof.
    """
    if not published or subject.device != "meta":
        return subject
    configs = attempt(lambda: [full_config(one.build(), one.config) for one in (subject, published[0])])
    if configs is None:
        return subject
    own, other = configs
    lengths = [(len(own[name]), len(other[name])) for name in subject.config if is_list(own, name) and is_list(other, name)]
    changed = [pair for pair in lengths if pair[0] != pair[1]]
    if len(changed) < 2 or len(set(changed)) > 1:
        return subject
    config = {**{name: without_tuples(other[name]) for name in subject.config if name in other}, **published[0].config}
    return published[0].having(config, published[0].inputs)


def is_list(config: Mapping[str, Any], name: str) -> bool:
    """Whether field ``name`` is a nonempty list without floats, and so may be a per-level list."""
    value = config.get(name)
    return isinstance(value, (list, tuple)) and bool(value) and not any(isinstance(item, float) for item in value)


def without_tuples(value: Any) -> Any:
    """``value`` with nested tuples converted to lists."""
    return [without_tuples(item) for item in value] if isinstance(value, (list, tuple)) else value


def lengthened(subject: Subject) -> Subject:
    """Subject with inputs longer than a chunk, if its module pads shorter ones to one; else ``subject``."""
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
    """Sizes n of the products with an n x n result of two values, such as attention scores in a chunk.

    Empty if the module does not run.
    """
    found = attempt(lambda: taped(subject)[2].nodes)
    nodes = found or []
    parameters = {node.id for node in nodes if node.kind == "parameter"}
    return {
        node.sizes[1]
        for node in nodes
        if node.kind == "matmul" and node.sizes[1] == node.sizes[3] and not parameters & set(node.operands[:2])
    }
