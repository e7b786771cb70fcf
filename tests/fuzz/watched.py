"""Run commands under an audit hook that is installed before symflops is imported; a script, started by ``test_commands_watched``.

    python tests/fuzz/watched.py PLAN.json

The plan has the folders that code may come from, and command lines, each with the folders that it may write to. What the hook
saw that it should not have goes to standard output as JSON.
"""

import sys

sys.path.pop(0)  # the folder of this script: an installed command has that of the interpreter's scripts

import contextlib
import io
import json
import os

UNNAMED = ("/dataclasses.py", "/collections/__init__.py", "/typing.py", "/jinja2/environment.py", "/networkx/utils/decorators.py", "/mpmath/ctx_mp_python.py", "/sympy/__init__.py", "/sympy/external/importtools.py")
"""Who may run code that has no file: code that is written by these from names that they check, or from templates of the package."""
OWN_PROCESS = ("symflops", "support", "workers.py")
OWN_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from symflops.training.introspect."
PROGRAMS = ("latexmk", "nvidia-smi", "npu-smi", "fc-list")  # TeX, device queries, and fonts for a picture
MOVES = ("os.rename", "os.link", "os.symlink", "shutil.copyfile", "shutil.move", "shutil.copytree")
PATHS = ("os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.chown", "os.truncate", "os.utime", "os.chflags", "os.setxattr", "shutil.rmtree", "tempfile.mkstemp", "tempfile.mkdtemp", "shutil.chown", "shutil.unpack_archive", "shutil.make_archive")
NEVER = ("os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn", "socket.", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.", "code.", "cpython.run_", "sys._debugmallocstats")


class Watch:
    """The hook; ``seen`` are the things that no command may do."""

    def __init__(self, plan: dict) -> None:
        self.code = tuple(plan["code"])
        self.sentinel = plan["sentinel"]
        self.writes: tuple[str, ...] = ()
        self.seen: list[str] = []
        self.quiet = False
        self.count = 0

    def hook(self, event: str, args: tuple) -> None:
        if self.quiet:
            return
        self.quiet = True
        try:
            self.look(event, args)
        finally:
            self.quiet = False

    def look(self, event: str, args: tuple) -> None:
        if event == "exec":
            self.count += 1
            self.executed(args[0])
        elif event == "open":
            self.opened(*args)
        elif event == "import":
            if args[1] and not self.known(args[1]):
                self.seen.append(f"imported {args[0]} from {args[1]}")
        elif event == "subprocess.Popen":
            self.started(*args[:2])
        elif event == "ctypes.dlopen" and isinstance(args[0], str) and os.sep in args[0] and not self.known(args[0]):
            self.seen.append(f"loaded {args[0]}")
        elif event in MOVES:
            for path, folder in zip(args[:2], (*args[2:], -1, -1)):
                self.written(path, event, folder)
        elif event in PATHS:
            self.written(args[0], event, args[-1] if len(args) > 1 else -1)
        elif event.startswith(NEVER):
            self.seen.append(f"{event}{args!r:.100}")

    def known(self, path: object) -> bool:
        """Whether a file is of the installed packages or the standard library, some of whose files are links (Debian)."""
        text = os.fsdecode(path) if isinstance(path, (bytes, os.PathLike)) else str(path)
        return os.path.realpath(text).startswith(self.code) or os.path.dirname(text) == os.path.dirname(os.__file__)

    def executed(self, code: object) -> None:
        name = getattr(code, "co_filename", "?")
        if self.sentinel in texts(code):
            self.seen.append(f"ran code of an input, named {name}")
        if name.startswith("<frozen ") or self.known(name):
            return
        caller = sys._getframe(3)  # of hook, look and this one
        while caller and caller.f_code.co_filename.startswith("<"):
            caller = caller.f_back
        if not (caller and caller.f_code.co_filename.endswith(UNNAMED) and self.known(caller.f_code.co_filename)):
            self.seen.append(f"ran code named {name}, from {caller and caller.f_code.co_filename}")

    def opened(self, path: object, mode: object, flags: object) -> None:
        if isinstance(path, int):
            return
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            self.written(path, "open")
        elif "importlib" in sys._getframe(3).f_code.co_filename and not self.known(path):
            self.seen.append(f"read code from {path}")

    def written(self, path: object, event: str, folder: object = -1) -> None:
        if isinstance(path, int) or path is None:
            return
        inside = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) and folder > 2 and os.path.exists(f"/proc/self/fd/{folder}") else ""
        place = os.path.realpath(os.path.join(inside, os.fsdecode(path)))
        if place != os.devnull and not place.startswith(self.writes):
            self.seen.append(f"{event} {place}")

    def started(self, program: object, args: object) -> None:
        words = [os.fsdecode(word) for word in args] if isinstance(args, (list, tuple)) else [os.fsdecode(args)]
        own = words[:2] == [sys.executable, "-I"] and words[2].endswith(os.path.join(*OWN_PROCESS)) and self.known(words[2]) and len(words) == 3
        own |= words[:3] == [sys.executable, "-I", "-c"] and words[3].startswith(OWN_START) and self.known(os.path.join(words[4], "symflops", "__init__.py"))
        if not own and os.path.basename(os.fsdecode(program)) not in PROGRAMS:
            self.seen.append(f"started {words}")


def texts(code: object) -> str:
    """Names and texts of a code object and of those in it."""
    found = [str(getattr(code, "co_names", ""))]
    for value in getattr(code, "co_consts", ()):
        found.append(texts(value) if hasattr(value, "co_consts") else value if isinstance(value, str) else repr(value))
    return " ".join(found)


def meter(config: object, batch: dict) -> int:
    """A step of a training job with a meter."""
    import warnings

    from symflops import MFUMeter

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = MFUMeter.of_config(config, devices=1, peak_tflops=100.0)
        measured.add(**batch)
        measured.step()
        measured.describe(**batch)
    return 0


def main() -> None:
    plan = json.load(open(sys.argv[1], encoding="utf-8"))
    watch = Watch(plan)
    sys.path[:0] = plan["path"]
    sys.addaudithook(watch.hook)
    found = []
    for line in plan["lines"]:
        watch.seen, watch.writes = [], tuple(line["writes"])
        if line.get("many"):
            from symflops.support import workers

            workers.MANY, os.cpu_count = 2, lambda: 2
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                if "meter" in line:
                    code = meter(line["meter"], line["batch"])
                else:
                    from symflops.cli.main import main as command

                    code = command(line["words"])
            except SystemExit as error:
                code = error.code
            except BaseException as error:
                code = f"{type(error).__name__}: {error}"
        watch.quiet = True
        foreign = sorted(name for name, module in list(sys.modules.items()) if isinstance(getattr(module, "__file__", None), str) and not watch.known(module.__file__) and name != "__main__")
        found.append({"line": line.get("words") or ["meter", line["meter"]], "code": code, "seen": [*watch.seen, *(f"has the module {name}" for name in foreign)], "err": err.getvalue()[-400:], "out": len(out.getvalue())})
        watch.quiet = False
    watch.quiet = True
    print(json.dumps({"lines": found, "executed": watch.count}))


if __name__ == "__main__":
    main()
