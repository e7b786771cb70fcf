"""The public contract as data: commands, exit codes, JSON, and the names that a program imports.

  python -m tests.freeze.contract write

writes contract.json anew. Later changes may add to the contract; they never rename, remove or change what stands there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from tests.freeze import api, calls, objects, parsers

FILE = Path(__file__).with_name("contract.json")


def collected() -> dict[str, Any]:
    """The contract as it is now."""
    return {
        "arguments": dict(parsers.every_command()),
        "calls": calls.every_call(),
        "names": dict(api.every_name()),
        "mentioned": {name: api.described(api.resolved(name)) for name in api.mentioned()},
        "objects": objects.every_object(),
    }


def recorded() -> dict[str, Any]:
    """The contract as it is committed."""
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


def broken(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """What is missing or changed; keys that are new are none of it, and neither are new choices and new optional parameters."""
    if isinstance(before, dict) and isinstance(after, dict):
        if path.startswith(" > arguments > "):
            after = {spelling(key, before): value for key, value in after.items()}
        for key, value in before.items():
            if key in after:
                yield from broken(value, after[key], f"{path} > {key}")
            else:
                yield f"{path} > {key}: missing"
        yield from (f"{path} > {key}: new, and required" for key in after.keys() - before.keys() if demanding(after[key]))
    elif path.endswith(" > required") and before is True and after is False:
        pass  # what had to be given may be left out
    elif path.endswith(" > excludes"):
        yield from broken(before or [], after or [], f"{path} > choices")
    elif path.endswith(" > choices") and isinstance(before, list) and isinstance(after, list):
        yield from (f"{path}: {choice} is missing" for choice in before if choice not in after)
    elif path.startswith((" > names", " > mentioned")) and isinstance(before, list) and isinstance(after, list):
        yield from (f"{path}: {one} is missing" for one in kept(before, after))
        yield from (f"{path}: {one} is new, and required" for one in after if one not in before and necessary(one))
    elif before != after:
        yield f"{path}: {before} was, {after} is"


def spelling(key: str, before: Collection[str]) -> str:
    """What an argument was called in ``before``, of whose spellings it may have more now; else what it is called."""
    return next((one for one in before if set(one.split(", ")) <= set(key.split(", "))), key)


def demanding(argument: Any) -> bool:
    """Whether a new argument of a command must be given."""
    return isinstance(argument, dict) and argument.get("required") is True


def necessary(parameter: str) -> bool:
    """Whether a new parameter of a function must be given."""
    return " = " not in parameter and not parameter.startswith("var_")


def kept(before: list[str], after: list[str]) -> list[str]:
    """The parameters that a function had and has no longer, or has in another order where they are given by position.

    A parameter by name may get a default.
    """
    after = [*after, *(one.partition(" = ")[0] for one in after if one.startswith("keyword_only"))]
    positional = [one for one in before if one.startswith("positional")]
    now = [one for one in after if one.startswith("positional")][: len(positional)]
    return [one for one in before if one not in after or (one in positional and one not in now)]


def main() -> int:
    """Write the contract anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write",))
    parser.parse_args()
    FILE.write_text(json.dumps(collected(), indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
    print(f"written to {FILE.name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
