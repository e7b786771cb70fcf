"""Drafts a class at the number of levels of a published config: lists of widths or kinds per level are its structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.draft.limits import attempt
from symflops.draft.trace.subject import Subject, full_config


def levelled(subject: Subject, published: Sequence[Subject]) -> Subject:
    """The first published subject if its lists per level have another length, else the subject itself.

    Two lists or more that have one length in the subject and one other length in the published config are lists per level. A
    single list is something else. A published config that does not build fails in its proof, and is passed over here.
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
    config = {**{name: plain(other[name]) for name in subject.config if name in other}, **published[0].config}
    return published[0].having(config, published[0].inputs)


def is_list(config: Mapping[str, Any], name: str) -> bool:
    """Whether a field is a list that may be per level: of anything but fractions."""
    value = config.get(name)
    return isinstance(value, (list, tuple)) and bool(value) and not any(isinstance(item, float) for item in value)


def plain(value: Any) -> Any:
    """A value with lists instead of tuples."""
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
