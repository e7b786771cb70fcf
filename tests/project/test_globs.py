"""Globs: what fnmatch says, in time that does not grow with the number of stars."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from hypothesis import given, strategies as st
from sympy import Symbol

from symflops.ir import patterns
from symflops.ir.patterns import Path, any_matches, is_selector

WORDS = st.lists(st.sampled_from(["a", "b", "ab", "aab", "weight", "x_1", ""]), min_size=1, max_size=8)
GLOBS = st.lists(st.sampled_from(["*", "a", "b*", "*a*", "a?", "[ab]*", "[!a]", "weight", "**", "*_*", ""]), min_size=1, max_size=6)


@given(WORDS, GLOBS)
def test_a_glob_says_what_fnmatch_says(words, globs):
    text, pattern = ".".join(words), ".".join(globs)
    assert any_matches([pattern], Path((text,)), {}) == fnmatchcase(text, pattern)


@given(st.lists(st.sampled_from(["blocks", "attn", "*", "q*"]), max_size=3), st.sampled_from(["2", "-1", ":3", "::2"]), st.booleans())
def test_a_selector_matches_its_index_alone(words, selector, holds):
    index = Symbol("i@1_")
    path = Path(("blocks.", index, ".attn.q"))
    pattern = ".".join(["blocks", selector, *words])
    expected = holds and fnmatchcase("attn.q", ".".join(words)) if words else False
    assert any_matches([pattern], path, {index: frozenset([selector] if holds else [])}) == expected
    assert is_selector(selector)


def test_matching_searches_once_for_each_piece(monkeypatch):
    """Nine stars over sixty parts: each piece is looked for once, and none can repeat."""
    glob = patterns._compiled("*.a.*.a.*.a.*.a.*.a.*.a.*.a.*.a.*.b")
    assert all("*" not in piece.pattern.replace("[^", "") and "+" not in piece.pattern for piece in (*glob.pieces, glob.end))
    assert not glob.fullmatch(".".join(["a"] * 60)) and glob.fullmatch(".".join(["a"] * 60 + ["b"]))
    assert len(glob.pieces) == 9 and all(isinstance(piece, re.Pattern) for piece in glob.pieces)
