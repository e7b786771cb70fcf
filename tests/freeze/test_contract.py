"""The public contract holds: what is recorded in contract.json is still there, and as it was."""

from __future__ import annotations

import copy

import pytest

from tests.freeze import api, calls, contract, objects, parsers

RECORDED = contract.recorded()


def broken(part: str, now: object) -> list[str]:
    return list(contract.broken(RECORDED[part], now, f" > {part}"))


def test_every_command_takes_the_arguments_that_it_took():
    assert broken("arguments", dict(parsers.every_command())) == []


@pytest.mark.thorough
def test_calls_exit_and_print_as_they_did():
    assert broken("calls", calls.every_call()) == []


def test_published_names_stand_where_they_stood_and_take_what_they_took():
    assert broken("names", dict(api.every_name())) == []


def test_names_that_pages_mentioned_are_still_there():
    assert broken("mentioned", {name: api.described(api.resolved(name)) for name in RECORDED["mentioned"]}) == []


def test_names_that_pages_mention_now_are_there():
    for name in api.mentioned():
        api.resolved(name)


def test_published_objects_hold_what_they_held():
    assert broken("objects", objects.every_object()) == []


def test_every_command_is_called_and_every_exit_code_occurs():
    assert {words["words"][0] for words in RECORDED["calls"].values() if words["words"]} >= set(RECORDED["arguments"])
    assert {found["exit"] for found in RECORDED["calls"].values()} == {0, 1, 2}


@pytest.mark.parametrize(
    "path",
    [
        ("arguments", "estimate", "--unit", "choices"),
        ("arguments", "compare", "--json", "kind"),
        ("calls", "unknown model", "exit"),
        ("calls", "estimate json", "json", "recomputed"),
        ("names", "symflops.Model.program"),
        ("objects", "regimes", "lora"),
    ],
)
def test_what_is_removed_is_found(path):
    now = copy.deepcopy(RECORDED)
    place = now
    for key in path[:-1]:
        place = place[key]
    if isinstance(place[path[-1]], list):
        place[path[-1]].pop()
    else:
        del place[path[-1]]
    assert list(contract.broken(RECORDED, now))


def test_what_is_added_is_no_break():
    now = copy.deepcopy(RECORDED)
    now["arguments"]["estimate"]["--new"] = {"required": False}
    now["arguments"]["estimate"]["--unit"]["choices"].append("petaflops")
    now["names"]["symflops.load"].append("keyword_only new = None")
    now["calls"]["estimate json"]["json"]["new"] = "int"
    assert list(contract.broken(RECORDED, now)) == []
    before, after = ({"names": {"one": [f"keyword_only name{default}"]}} for default in ("", " = None"))
    assert list(contract.broken(before, after)) == [] and list(contract.broken(after, before))


def test_a_new_argument_that_must_be_given_is_a_break():
    now = copy.deepcopy(RECORDED)
    now["arguments"]["estimate"]["--new"] = {"required": True}
    now["names"]["symflops.load"].append("keyword_only new")
    assert len(list(contract.broken(RECORDED, now))) == 2
