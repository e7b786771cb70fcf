"""What one case may use: CPU time, memory, and nothing of the machine. Each is enforced while it runs, and measured."""

from __future__ import annotations

import difflib  # noqa: F401  what is imported late runs code when it is: imported here, outside of any case
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any

SECONDS = 2.0
MEGABYTES = 300
FORBIDDEN = ("os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.", "ctypes.", "shutil.", "os.remove", "os.rename", "os.mkdir", "os.rmdir")
UNNAMED = ("<string>", "<unknown>", "<stdin>", "<spec>", "<lambdifygenerated")


class OutOfTime(BaseException):
    """A case took too long; a BaseException, so that nothing that is tested catches it."""


class Executed(BaseException):
    """A case made the interpreter do something that no text may make it do."""


@dataclass
class Usage:
    """What a case took: CPU seconds and growth of the peak of its memory, in megabytes."""

    seconds: float = 0.0
    megabytes: float = 0.0


class _Watch:
    """The audit hook of the process: it sees every file that is opened to write, every process, every code that runs."""

    def __init__(self) -> None:
        self.active = False
        self.seen = ""
        self.installed = False

    def install(self) -> None:
        if not self.installed:
            sys.addaudithook(self.hook)
            self.installed = True

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            path, mode, flags = args
            writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            if writes:
                self.refuse(f"opened {path!r} to write")
        elif event == "exec":
            name = getattr(args[0], "co_filename", "")
            if name.startswith(UNNAMED):
                self.refuse(f"ran code named {name}")
        elif event.startswith(FORBIDDEN):
            self.refuse(f"{event}{args!r:.100}")

    def refuse(self, what: str) -> None:
        self.seen = self.seen or what
        raise Executed(what)


WATCH = _Watch()


def _out_of_time(*_: Any) -> None:
    raise OutOfTime("more than the CPU seconds that it may take")


def status(field: str) -> int:
    """A line of /proc/self/status in kilobytes, 0 where there is no such file."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith(field)), 0)
    except OSError:
        return 0


def _reset_peak() -> None:
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


class Limits:
    """Runs one case at a time: ``with Limits() as usage: ...``. What is beyond a limit raises inside the block."""

    def __init__(self, seconds: float = SECONDS, megabytes: int = MEGABYTES) -> None:
        self.seconds = seconds
        self.megabytes = megabytes
        self.usage = Usage()

    def __enter__(self) -> Usage:
        WATCH.install()
        self.old = resource.getrlimit(resource.RLIMIT_AS)
        _reset_peak()
        self.before = status("VmRSS:")
        soft = status("VmSize:") * 1024 + self.megabytes * 2**20
        if self.before:
            resource.setrlimit(resource.RLIMIT_AS, (soft, self.old[1]))
        self.handler = signal.signal(signal.SIGPROF, _out_of_time)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        self.start = time.process_time()
        WATCH.seen = ""
        WATCH.active = True
        return self.usage

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        WATCH.active = False
        self.usage.seconds = time.process_time() - self.start
        signal.signal(signal.SIGPROF, self.handler)
        resource.setrlimit(resource.RLIMIT_AS, self.old)
        self.usage.megabytes = max(0, status("VmHWM:") - self.before) / 1024
