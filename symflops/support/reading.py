"""Bounded reads: reading any path or text terminates, with data of bounded size and depth.

Imports neither pathlib nor typing, to keep quick commands fast.
"""

from __future__ import annotations

import json

from symflops.support.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import Any

MOST_BYTES = 32 * 2**20
MOST_DEPTH = 64
PIECE = 2**20
"""Limits: bytes per file, nesting depth of lists and mappings, bytes per read."""
PATIENCE = 5.0
"""Seconds to wait for data from a pipe."""


def read_bytes(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """The content of a file.

    Raises:
        SymflopsError: the file cannot be read, or has more than ``most`` bytes.
    """
    try:
        with open(path, "rb", opener=opened) as file:
            pieces, left = [], most + 1
            regular = is_regular(file.fileno())
            while left and (regular or has_data(file.fileno())):
                piece = file.read1(min(left, PIECE))  # one large read would allocate the full amount for any file
                if not piece:
                    break
                pieces.append(piece)
                left -= len(piece)
    except (OSError, ValueError) as error:
        raise SymflopsError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not left:
        raise SymflopsError(f"{path}: larger than {most:,} bytes")
    return b"".join(pieces)


def opened(path: str, flags: int) -> int:
    """Open a file with the ``flags`` of :func:`os.open` and return its descriptor.

    A pipe is opened without waiting for its writer; then this waits until the pipe has data.

    Raises:
        OSError: it cannot be opened, or no data arrives.
    """
    import os

    found = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0)
    try:
        if not is_regular(found) and has_data(found):
            os.set_blocking(found, True)
    except BaseException:
        os.close(found)
        raise
    return found


def is_regular(file: int) -> bool:
    """Whether the open file of descriptor ``file`` is on disk, so that a read never waits for a process."""
    import os

    return os.name == "nt" or os.fstat(file).st_mode & 0o170000 in (0o100000, 0o040000)


def has_data(file: int) -> bool:
    """Wait until the pipe of descriptor ``file`` has data or has ended; the result is always True.

    Raises:
        TimeoutError: neither happens within ``PATIENCE`` seconds.
    """
    import select

    if not select.select([file], [], [], PATIENCE)[0]:
        raise TimeoutError(0, f"a pipe, and nothing came for {PATIENCE:g} seconds")
    return True


def what_counts(page: bytes) -> bytes:
    """The text of a convention's page without its last field ``reproduces``, on which no figure depends."""
    rules, field, _ = page.partition(b"\nreproduces:")
    return rules + b"\n" if field else page


def read_lines(path: str | os.PathLike[str], most: int, longest: int = PIECE) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, line ends included.

    Raises:
        SymflopsError: the file cannot be read, is not UTF-8, or has more than ``most`` characters; or a line has more than
            ``longest``.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="", opener=opened) as file:
            while line := file.readline(longest + 1):
                most -= len(line)
                if len(line) > longest or most < 0:
                    raise SymflopsError(f"{path}: too large, or a line of more than {longest:,} characters")
                yield line
    except UnicodeDecodeError:
        raise SymflopsError(f"{path}: not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise SymflopsError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def read_text(path: str | os.PathLike[str], most: int = MOST_BYTES) -> str:
    """The text of a UTF-8 file, without a byte order mark.

    Raises:
        SymflopsError: the file cannot be read, has more than ``most`` bytes, or is not UTF-8.
    """
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SymflopsError(f"{path}: not UTF-8 text") from None


def read_json(path: str | os.PathLike[str]) -> Any:
    """The JSON value of a file.

    Raises:
        SymflopsError: the file cannot be read, or its text is not JSON, nests too deep, or has a key twice in an object.
    """
    return parse_json(read_text(path), str(path))


def parse_json(text: str, label: str) -> Any:
    """The value of a JSON text; ``label`` is what messages call the text.

    Raises:
        SymflopsError: the text is not JSON, nests too deep, or has a key twice in an object.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique)
        too_deep = depth(value) > MOST_DEPTH
    except RecursionError:
        too_deep = True
    except ValueError as error:
        raise SymflopsError(f"{label}: not JSON: {error}") from None
    if too_deep:
        raise SymflopsError(f"{label}: nests deeper than {MOST_DEPTH} levels")
    return value


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object, given as text or as the path of a file.

    Raises:
        SymflopsError: it cannot be read, or is not a JSON object.
    """
    found = parse_json(text, "the JSON") if text.lstrip().startswith("{") else read_json(text)
    if not isinstance(found, dict):
        raise SymflopsError(f"{text}: not a JSON object")
    return found


def read_own(path: str | os.PathLike[str], shape: Any) -> Any:
    """The JSON object in a file that symflops wrote; an empty dict if the file is missing or damaged.

    It also is empty if the object does not have the ``shape`` (as in :func:`fits`).
    """
    try:
        found = read_json(path)
    except SymflopsError:
        return {}
    return found if fits(found, shape) else {}


def fits(value: Any, shape: Any) -> bool:
    """Whether a JSON value has a shape.

    A shape is a type; or ``[shape]``, a list of values of that shape; or a dict with the keys that a mapping must have and the
    shapes of their values. Its key ``...`` has the shape for all other keys, which otherwise may have any value.

    >>> fits({"a": [1], "b": {}}, {"a": [int], ...: dict}), fits({"a": ["x"]}, {"a": [int]})
    (True, False)
    """
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape)
    if not isinstance(value, dict) or not shape.keys() - {...} <= value.keys():
        return False
    return all(fits(item, shape.get(key, shape.get(..., object))) for key, item in value.items())


def depth(value: Any) -> int:
    """How deep lists and mappings of a JSON value are nested: 1 for a scalar or an empty list."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max((depth(item) for item in inner if isinstance(item, (dict, list))), default=0)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return found
