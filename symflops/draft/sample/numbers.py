"""Explores which numbers of a subject move, those of defaults that the class fills in too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symflops.draft.sample.runner import Runner
from symflops.draft.trace.subject import class_of
from symflops.draft.vary.explore import Explorer
from symflops.draft.vary.numbers import slots_of
from symflops.draft.vary.variables import Moves, Slot, is_whole

IGNORED = ("token_id", "token_index", "seed", "pad_", "_id")


def explored(runner: Runner) -> Moves:
    """Which slots of the subject move, alone or with others; the subject itself must run."""
    subject = runner.subject
    given = [slot for slot in slots_of(subject.config, subject.inputs) if not ignored(str(slot.key[-1]))]
    base = runner.taped({})
    assert base is not None
    renamed = getattr(getattr(class_of(subject.reference), "config_class", None), "attribute_map", {})
    hidden = {name for pair in renamed.items() for name in pair if set(pair) & set(subject.config)}
    filled = [slot for slot in defaults(base[1], subject.config) if slot.key[0] not in hidden]
    # no size of a spec is read from a list within a list
    deep = [slot for slot in given if slot.of_config and sum(isinstance(part, int) for part in slot.key) > 1]
    slots = [*(slot for slot in given if slot not in deep), *filled]
    moves = Explorer(runner.signature, slots, runner.signature({}), runner.deadline, runner.tell, set(filled)).run()
    moves.stuck += [slot for slot in deep if slot.kind == "number"]
    return moves


def ignored(name: str) -> bool:
    """Whether a field is an index or a seed rather than a size."""
    return any(word in name for word in IGNORED)


def defaults(config: Mapping[str, Any], given: Mapping[str, Any], key: tuple[str, ...] = ()) -> list[Slot]:
    """The whole numbers that the class filled in itself, within parts of the config that were given too."""
    found = []
    for name, value in config.items():
        if isinstance(value, Mapping) and isinstance(given.get(name), Mapping):
            found += defaults(value, given[name], (*key, name))
        elif is_whole(value) and value > 0 and name not in given and not ignored(name) and not name.startswith("_"):
            found.append(Slot("config", (*key, name), value))
    return found
