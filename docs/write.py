"""Writes the parts of README.md and of the pages in ``docs`` that come from the code: ``python docs/write.py [--check]``.

Pictures that come from the code are files of their own. A written part stands between two comments; the first names the
writer and its arguments::

    <!-- written by docs/write.py: keys size -->
    ...
    <!-- end -->

``--check`` only names the pages that would change, with exit code 1.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(ROOT)]

import api  # noqa: E402
import blocks  # noqa: E402
import masks  # noqa: E402
import operators  # noqa: E402
import papers  # noqa: E402
import reference  # noqa: E402
import results  # noqa: E402
import systems  # noqa: E402

PART = re.compile(r"(<!-- written by docs/write\.py: ([^\n]*) -->\n).*?(<!-- end -->)", re.DOTALL)
WRITERS: Mapping[str, Callable[..., str]] = {
    "operators": operators.operators,
    "common-fields": operators.common,
    "forms": operators.forms,
    "masks": masks.masks,
    "keys": reference.keys,
    "functions": reference.functions,
    "commands": reference.commands,
    "regimes": reference.regimes,
    "conventions": reference.conventions,
    "reproduced": reference.reproduced,
    "roles": reference.roles,
    "inferred-roles": reference.inferred_roles,
    "diagnostics": reference.diagnostics,
    "blocks": blocks.blocks,
    "api": api.entry,
    "who-says-what": results.who_says_what,
    "closed-form": results.closed_form,
    "identities": results.identities,
    "packing": results.packing,
    "shell": results.shell,
    "papers": papers.papers,
    "system": systems.system,
}


PICTURES: Mapping[str, Callable[[], Mapping[str, str]]] = {papers.FOLDER: papers.drawn}
"""The folders of pictures, each with what draws all of it."""


def pages() -> list[Path]:
    """README.md and every page of the documentation."""
    return [ROOT / "README.md", *sorted(path for path in HERE.rglob("*.md") if "_build" not in path.parts)]


def written(text: str) -> str:
    """The text of a page with each of its parts written anew.

    Raises:
        KeyError: a part names an unknown writer.
    """

    def part(found: re.Match[str]) -> str:
        name, *arguments = shlex.split(found[2])
        return f"{found[1]}\n{WRITERS[name](*arguments).strip()}\n\n{found[3]}"

    return PART.sub(part, text)


def stale() -> Iterator[tuple[Path, str | None]]:
    """The pages and pictures that are not as they would be written, with their new text; None for one that nothing draws."""
    for page in pages():
        text = page.read_text("utf-8")
        new = written(text)
        if new != text:
            yield page, new
    for folder, draw in PICTURES.items():
        drawn = {HERE / folder / name: text for name, text in draw().items()}
        yield from ((path, text) for path, text in drawn.items() if not path.is_file() or path.read_text("utf-8") != text)
        yield from ((path, None) for path in sorted((HERE / folder).glob("*")) if path not in drawn)


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` only name those that would change."""
    check = arguments == ["--check"]
    if arguments and not check:
        sys.stderr.write("usage: python docs/write.py [--check]\n")
        return 2
    found = list(stale())
    for page, new in found:
        sys.stdout.write(f"{page.relative_to(ROOT)}\n")
        if not check and new is None:
            page.unlink()
        elif not check and new is not None:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(new, "utf-8")
    return int(check and bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
