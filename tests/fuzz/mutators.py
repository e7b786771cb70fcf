"""Mutations of texts: bytes at random, and lines, tokens and structure of YAML, JSON and expressions."""

from __future__ import annotations

import random
import re

SENTINEL = "symflops_fuzz_sentinel"
INJECTIONS = (
    f"__import__('os').system('touch {SENTINEL}')",
    f"open('{SENTINEL}', 'w')",
    f"().__class__.__base__.__subclasses__()[0]('touch {SENTINEL}')",
    f"exec(\"open('{SENTINEL}','w')\")",
    f"\"\"\"\\nimport os; os.system('touch {SENTINEL}')\\n\"\"\"",
    f"\\immediate\\write18{{touch {SENTINEL}}}",
    f"!!python/object/apply:os.system ['touch {SENTINEL}']",
    f"{{{{ ''.__class__.__mro__[1] }}}} <% import os %> << {SENTINEL} >>",
    f"x'); __import__('os').system('touch {SENTINEL}') #",
    f"lambda: open('{SENTINEL}', 'w')",
    f"[open('{SENTINEL}', 'w') for x in [1]]",
    f"f\"{{open('{SENTINEL}', 'w')}}\"",
)
NASTY = (
    "", "~", "null", "true", "false", "on", "_", "/", ".", "..", "{", "}", "{}", "[]", "[", "]", "{i}", "{L-1}", "'", '"', "|", ">", "&a x", "*a", "!x y", "?", ": :", "- -",
    "0", "-1", "1", "2", "3.5", "1e308", "1e999", "0x10", "0b1", "1_000", "12:30", "08", "999999999999999999", "10**16", "9**9**9", "2**16**16", "1/0", "1//0", "1%0", "L/0",
    "nan", "inf", "NaN", "-Infinity", "range(10**9)", "range(4097)", "per(L, 10**9)", "per(1, 4096)", "[1]*10**9", "sum([])", "min([])", "max()", "sum()", "len(3)", "index([1], 2)",
    "rev(L)", "width(q)", "width()", "ceil(L)", "round_up(L, 0)", "int('x')", "count([], null)", "L if L else L", "L == null", "i in dual", "i in [0, L-1]", "i % 3 == 1", "(i*i) % 7 < 3",
    "L > D", "L >= 3 and D == 2", "not L", "L**16", "(L+D+H+1)**16", "(D+1)**8*(H+1)**8", "a.b", "a[0]", "a[::0]", "'text'", "b'x'", "1j", "...", "x:=3", "yield", "lambda: 0", "*L", "L L", "i", "s", "D", "L", "H", "d", "q", "x", "y", "n",
    "op: linear", "op: attention", "block: gated_mlp", "repeat: L", "repeat: 10**15", "repeat: -3", "repeat: [1,2]", "repeat: {axis: x}", "experts: 0", "choose: 10**9", "mask: causal", "saves: null", "op: select", "tie: a.weight", "tie: {to: a.weight, when: tied}", "language: 1",
    "with: [h, h]", "gate: h", "add_to: h", "to: [_, _]", "when: L", "width: 0", "width: -D", "width: D/3", "heads: 0", "heads: 7", "kernel: []", "stride: 0", "fold: [x]", "window: {x: 0}", "shared: true", "no_grad: true",
    "\x00", "\t", "\ufeff", "\u202e", "é", "𝒟", "\ud7ff", "\r", "\x85", "\u2028", "x" * 300, "(" * 150, "[" * 90, "- " * 90, "{a: " * 70, "-" * 200, "not " * 60, "9" * 400,
)  # fmt: skip
TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*|\d+|'[^']*'|\"[^\"]*\"|[^\sA-Za-z0-9_]")


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, removed, inserted, or moved."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(5):
            case 0 if at < len(found):
                found[at] = rng.randrange(256)
            case 1:
                found[at:at] = bytes(rng.choice((rng.randrange(256), *b"{}[]:,-'\"#\n \\0")) for _ in range(rng.randint(1, 4)))
            case 2:
                del found[at : at + rng.randint(1, 30)]
            case 3 if at < len(found):
                found[at] ^= 1 << rng.randrange(8)
            case _:
                end = at + rng.randint(1, 60)
                piece = found[at:end]
                to = rng.randrange(len(found) + 1)
                found[to:to] = piece
    return bytes(found)


def token(text: str, rng: random.Random) -> str:
    """Something to put in the place of a token: one of the same text, a nasty one, or an injection."""
    kind = rng.random()
    if kind < 0.45:
        tokens = TOKEN.findall(text)
        return rng.choice(tokens) if tokens else "x"
    return rng.choice(NASTY) if kind < 0.9 else quoted(rng.choice(INJECTIONS), rng)


def quoted(text: str, rng: random.Random) -> str:
    """``text`` as it is, or as a quoted scalar of YAML."""
    return text if rng.random() < 0.4 else "'" + text.replace("'", "''") + "'"


def replace_token(text: str, rng: random.Random, other: str | None = None) -> str:
    """One token replaced by another one."""
    places = [match.span() for match in TOKEN.finditer(text)]
    if not places:
        return token(text, rng)
    start, end = rng.choice(places)
    return text[:start] + token(other or text, rng) + text[end:]


def mutate_lines(text: str, rng: random.Random) -> str:
    """Lines swapped, removed, doubled, moved, or indented otherwise."""
    lines = text.split("\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            lines[a], lines[b] = lines[b], lines[a]
        case 1:
            del lines[a]
        case 2:
            lines.insert(a, lines[b])
        case 3:
            lines.insert(b if b < len(lines) else 0, lines.pop(a))
        case 4:
            lines[a] = " " * rng.choice((0, 2, 4, 8)) + lines[a].lstrip()
        case _:
            low, high = sorted((a, b))
            lines[low:low] = lines[low : min(high, low + 8)]
    return "\n".join(lines)


FIELD = re.compile(r"(\w+): ((?:\[[^\]]*\]|\"[^\"]*\"|[^,{}\[\]\n\"])+)")


def mutate_fields(text: str, rng: random.Random) -> str:
    """One ``field: value`` changed: its value, its name, or both gone or doubled or exchanged with another one's."""
    places = list(FIELD.finditer(text))
    if not places:
        return replace_token(text, rng)
    match = rng.choice(places)
    other = rng.choice(places)
    name, value = match.group(1), match.group(2)
    kind = rng.randrange(6)
    if kind == 0:
        new = f"{name}: {other.group(2)}"
    elif kind == 1:
        new = f"{other.group(1)}: {value}"
    elif kind == 2:
        new = f"{name}: {token(text, rng)}"
    elif kind == 3:
        new = f"{name}: {value}, {other.group(0)}"
    elif kind == 4:
        new = f"{name}: {replace_token(value, rng, text)}"
    else:
        new = rng.choice(NASTY)
    return text[: match.start()] + new + text[match.end() :]


WORD = re.compile(r"(?<=[ \[:(])[A-Za-z_]\w*(?=[\],}) \n*+-])")


def mutate_alike(text: str, rng: random.Random) -> str:
    """One value put in the place of another one of the same field, or one name in the place of another: often still a spec."""
    if rng.random() < 0.5:
        places = list(FIELD.finditer(text))
        match = rng.choice(places) if places else None
        others = [other for other in places if match and other.group(1) == match.group(1)]
        if match is None:
            return text
        return text[: match.start(2)] + rng.choice(others).group(2) + text[match.end(2) :]
    places = [match.span() for match in WORD.finditer(text)]
    if not places:
        return text
    (start, end), (low, high) = rng.choice(places), rng.choice(places)
    new = text[low:high] if rng.random() < 0.7 else rng.choice(("0", "1", "2", "L", "D", "i", "L - 1", "2*D", "i % 2", "null", "true", "false", "10**15", "-1", "D//3", "D/2", "[D, D]"))
    return text[:start] + new + text[end:]


def mutate_yaml(text: str, rng: random.Random) -> bytes:
    """A spec changed a few times, in one of all ways."""
    if rng.random() < 0.12:
        return mutate_bytes(text.encode(), rng)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 4))):
        change = rng.choice((mutate_lines, mutate_alike, mutate_alike, mutate_alike, mutate_fields, replace_token))
        text = change(text, rng)
    return text.encode("utf-8", "surrogatepass")
