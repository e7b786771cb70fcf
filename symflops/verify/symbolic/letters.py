"""Letters for the fields of a config, as papers use them: ``hidden_size`` is ``D``, ``num_attention_heads`` is ``H``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

LETTERS = (
    ("head_dim", "d"), ("d_kv", "d"), ("vocab", "V"), ("key_value_heads", "G"), ("kv_heads", "G"), ("heads", "H"),
    ("n_head", "H"), ("layers", "L"), ("depth", "L"), ("n_layer", "L"), ("blocks", "L"), ("moe_intermediate", "M"),
    ("intermediate", "F"), ("ffn", "F"), ("d_ff", "F"), ("experts_per_tok", "k"), ("top_k", "k"), ("experts", "E"),
    ("hidden_size", "D"), ("d_model", "D"), ("n_embd", "D"), ("embed_dim", "D"), ("dim", "D"), ("in_channels", "c"),
    ("out_channels", "o"), ("channels", "c"), ("patch", "p"), ("image_size", "R"), ("max_position", "X"), ("positions", "X"),
    ("rank", "r"), ("kernel", "K"), ("stride", "s"), ("width", "D"), ("words", "V"), ("state", "N"),
    ("groups", "g"), ("text", "J"),
)  # fmt: skip
"""Letter of the fields whose last word contains a text; the first match counts."""
MORE = (("hidden", "F"), ("mlp", "F"))
"""Further letters of traces; a draft names such fields by their initials."""


def letters_of(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """A short name for each field, all of them different and none of them in ``taken``."""
    found: dict[str, str] = {}
    used = set(taken)
    for name in names:
        found[name] = next(letter for letter in candidates(name) if letter not in used)
        used.add(found[name])
    return found


def candidates(name: str) -> Iterator[str]:
    """Yield short names for a field, the best first."""
    last = name.rpartition(".")[2] if not name.rpartition(".")[2].isdigit() else name.split(".")[-2]
    letter = next((letter for text, letter in (*LETTERS, *MORE) if text in last), last[:1].upper())
    yield letter
    yield from (f"{letter}{number}" for number in count(2))
