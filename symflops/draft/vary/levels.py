"""Drafts are made at the number of levels that a published config has: lists of widths or kinds per level are its structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.draft.trace.subject import Subject, full_config


def levelled(subject: Subject, published: Sequence[Subject]) -> Subject:
    """The subject, or the first published one where its lists per level are longer or shorter.

    Lists of one length that all have another common length there are lists per level; one list alone is something else.
    """
    if not published or subject.device != "meta":
        return subject
    try:
        own, other = (full_config(one.build(), one.config) for one in (subject, published[0]))
    except Exception:  # what a published config lacks is told by its proof
        return subject
    lengths = [(len(own[name]), len(other[name])) for name in subject.config if listed(own, name) and listed(other, name)]
    changed = [pair for pair in lengths if pair[0] != pair[1]]
    if len(changed) < 2 or len(set(changed)) > 1:
        return subject
    config = {**{name: plain(other[name]) for name in subject.config if name in other}, **published[0].config}
    return published[0].having(config, published[0].inputs)


def listed(config: Mapping[str, Any], name: str) -> bool:
    """Whether a field is a list of whole numbers, words, or lists."""
    value = config.get(name)
    return isinstance(value, (list, tuple)) and bool(value) and not any(isinstance(item, float) for item in value)


def plain(value: Any) -> Any:
    """A value with lists in place of tuples."""
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
