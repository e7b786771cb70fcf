"""The streams of a command: closed ones become empty ones, and words of a user are shown, never obeyed, by a terminal."""

from __future__ import annotations

import os
import sys

from symflops.cli.terminal import STYLES
from symflops.diagnostics.errors import escaped, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OWN = tuple(f"\033[{style}m" for style in ("0", *STYLES.values(), "1;31", "1;33", "1;34", "1;36"))
"""The sequences by which a command styles text on a terminal."""


class Shown:
    """A stream that writes control characters of texts as escapes; one of messages shortens long lines, too."""

    def __init__(self, stream: Any, messages: bool) -> None:
        self._stream, self._messages = stream, messages

    def write(self, text: str) -> int:
        """Write a text, with the styles of a command if it goes to a terminal."""
        self._stream.write(self._shown(text) if not text.isprintable() or len(text) > 1000 else text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def _shown(self, text: str) -> str:
        if not self._stream.isatty():
            return self._plain(text)
        first, *rest = text.split("\033")
        found = [self._plain(first)]
        for part in rest:
            own = next((one[1:] for one in OWN if part.startswith(one[1:])), None)
            found.append(self._plain(f"\033{part}") if own is None else f"\033{own}{self._plain(part[len(own) :])}")
        return "".join(found)

    def _plain(self, text: str) -> str:
        if self._messages:
            head, tail = "\r" * text.startswith("\r"), "\r" * text.endswith("\r")  # of progress, which rewrites its line
            return head + shown(text.strip("\r") if head or tail else text) + tail
        return "\n".join([escaped(line) for line in text.split("\n")])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Streams:
    """While a command runs, its streams are open and show texts; afterwards they are as before."""

    def __enter__(self) -> None:
        self.before = sys.stdin, sys.stdout, sys.stderr
        closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
        if closed:
            null = os.open(os.devnull, os.O_RDWR)
            while null <= 2:  # a file that is opened later must not take the number of a standard stream
                null = os.dup(null)
            for name in closed:
                setattr(sys, name, os.fdopen(os.dup(null), "r" if name == "stdin" else "w", encoding="utf-8"))
            os.close(null)
        for stream in (sys.stdout, sys.stderr):
            if str(getattr(stream, "encoding", "utf-8")).lower().replace("-", "") != "utf8" and hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8")  # a locale without UTF-8 cannot say every formula
        sys.stdout, sys.stderr = Shown(sys.stdout, False), Shown(sys.stderr, True)

    def __exit__(self, *_: object) -> None:
        sys.stdin, sys.stdout, sys.stderr = self.before
