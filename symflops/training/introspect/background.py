"""Derives a program in a subprocess while training continues; one process per node fills the cache.

The first process of a node starts the derivation at once. The others poll the cache, and derive the program themselves if it
does not appear within a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from symflops.evaluate.classes import class_in
from symflops.library.cache import Entries
from symflops.library.catalog import PACKAGE, Catalog
from symflops.support.errors import SymflopsError
from symflops.training.introspect.elsewhere import START

PATIENCE, LIMIT = 60.0, 900.0
"""Seconds to wait for another process's result, and timeout of a subprocess in seconds."""
OWN = "training.introspect.background"


class Job:
    """A request that a subprocess answers, unless the answer is found before.

    Args:
        module: The module below ``symflops`` whose ``main`` answers the request.
        request: JSON data.
        what: What the subprocess does, for messages.
        find: Returns the answer of another process, or None.
        variables: Further environment variables of the subprocess.
        clock: Returns seconds.
    """

    def __init__(
        self, module: str, request: Mapping[str, Any], what: str, find: Callable[[], dict[str, Any] | None] = lambda: None,
        variables: Mapping[str, str] = MappingProxyType({}), clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.module, self.request, self.what, self.find, self.variables = module, request, what, find, variables
        self.clock, self.begun = clock, clock()
        self.process: subprocess.Popen[bytes] | None = None
        self.output, self.errors = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115  # pipes would fill
        self.found = self.find()
        if self.found is None and is_first():
            self.start()

    def start(self) -> None:
        """Start the subprocess."""
        words = [sys.executable, "-I", "-c", START.format(self.module), str(Path(PACKAGE).parent)]
        self.begun = self.clock()
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=self.output, stderr=self.errors, env={**os.environ, **self.variables}
        )
        assert self.process.stdin is not None
        with contextlib.suppress(OSError), self.process.stdin as pipe:
            pipe.write(json.dumps(self.request, default=str).encode())

    def poll(self) -> dict[str, Any] | None:
        """The answer as JSON data, or None until it is ready; never blocks.

        Raises:
            SymflopsError: the subprocess fails or times out.
        """
        if self.found is None:
            self.found = self._ended() if self.process is not None else self.find()
        waited = self.clock() - self.begun
        if self.found is None and self.process is None and waited > PATIENCE:
            self.start()
        elif self.found is None and self.process is not None and waited > LIMIT:
            self.process.kill()
            raise SymflopsError(f"{self.what} takes more than {LIMIT:.0f} seconds")
        return self.found

    def _ended(self) -> dict[str, Any] | None:
        """The answer that the subprocess has printed; None while it runs."""
        assert self.process is not None
        if self.process.poll() is None:
            return None
        self.output.seek(0)
        self.errors.seek(0)
        text, said = self.output.read(), " ".join(self.errors.read().decode(errors="replace").split())
        if self.process.returncode != 0 or not text:
            raise SymflopsError(said or f"{self.what} failed")
        found: dict[str, Any] = json.loads(text)
        return found

    def __repr__(self) -> str:
        return f"<{self.what} in the background>"


class Derivation(Job):
    """A derivation in a subprocess, for one config, regime and convention of a spec."""

    def __init__(
        self, catalog: Catalog, name: str, config: Mapping[str, Any], regime: str, convention: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        request = {"spec": name, "config": config, "regime": regime, "convention": convention}
        self.entries = Entries(catalog.file(name), regime, convention, class_in(config))
        super().__init__(OWN, request, f"deriving '{name}'", lambda: self.entries.find(config), clock=clock)

    def __repr__(self) -> str:
        return f"<Derivation of '{self.request['spec']}' in the background, {self.request['convention']}>"


def is_first() -> bool:
    """Whether this process has local rank 0, or runs without torch.distributed."""
    local = os.environ.get("LOCAL_RANK", os.environ.get("RANK"))
    if local is not None:
        return local == "0"
    distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
    ready = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return not ready or int(distributed.get_rank()) == 0


def in_a_line(error: SymflopsError) -> str:
    """Format an error in one line, without source positions (the text was generated)."""
    messages = [diagnostic.message for diagnostic in getattr(error, "diagnostics", ())]
    more = f" and {len(messages) - 3} more" if len(messages) > 3 else ""
    return "; ".join(messages[:3]) + more if messages else str(error)


def main() -> None:
    """Read spec, config, regime and convention from standard input; cache and print the derived program."""
    from symflops.library.lookup import by_name, interpreted

    given = json.loads(sys.stdin.read())
    try:
        config, name = given["config"], given["spec"]
        found = interpreted(by_name(name), name, config, given["regime"], given["convention"], lambda text: None)
    except SymflopsError as error:
        print(in_a_line(error), file=sys.stderr)
        raise SystemExit(1) from None
    print(json.dumps(found.stored.document))
