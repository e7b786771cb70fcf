"""The real functions of other frameworks that estimators are timed beside, each from one file at a stated commit."""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import types
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SOURCES = {
    "megatron-lm": ("NVIDIA/Megatron-LM", "d98e8a64ddf34856e74b24714e3bedb2f5a39553", "megatron/training/training.py"),
    "verl": ("verl-project/verl", "1dda039b9c6311889a9c9a26040677e1254814f9", "verl/utils/flops_counter.py"),
}


def text_of(name: str, checkouts: Mapping[str, str]) -> str:
    """The file of a framework at its commit: of a git checkout if one is given, else from GitHub."""
    repository, commit, path = SOURCES[name]
    if name in checkouts:
        words = ["git", "-C", checkouts[name], "show", f"{commit}:{path}"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
    with urllib.request.urlopen(f"https://raw.githubusercontent.com/{repository}/{commit}/{path}", timeout=60) as answer:
        return str(answer.read().decode())


class Arguments(argparse.Namespace):
    """Megatron's arguments; those that are not given are None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def megatron(checkouts: Mapping[str, str]) -> Callable[..., float]:
    """``num_floating_point_operations`` alone, since its file imports all of Megatron; the model is no hybrid."""
    tree = ast.parse(text_of("megatron-lm", checkouts))
    (found,) = (node for node in tree.body if getattr(node, "name", "") == "num_floating_point_operations")
    names: dict[str, Any] = {f"is_{kind}_variant": lambda variant: False for kind in ("linear_attention", "gated_delta_net")}
    names["is_hybrid_model"] = lambda args: False
    exec(compile(ast.Module([found], []), "training.py", "exec"), names)
    return names["num_floating_point_operations"]  # type: ignore[no-any-return]


def verl(checkouts: Mapping[str, str], config: Any) -> Any:
    """A ``FlopsCounter`` of a config, on a CPU."""
    device = types.ModuleType("verl.utils.device")
    device.get_torch_device = lambda: types.SimpleNamespace(get_device_name=lambda: "CPU")  # type: ignore[attr-defined]
    module = types.ModuleType("flops_counter")
    kept = sys.modules.get(device.__name__)
    sys.modules[device.__name__] = device
    try:
        exec(compile(text_of("verl", checkouts), "flops_counter.py", "exec"), vars(module))
    finally:
        sys.modules.pop(device.__name__) if kept is None else sys.modules.update({device.__name__: kept})
    return module.FlopsCounter(config)  # type: ignore[attr-defined]


def had(rival: Callable[[], Any]) -> Any:
    """A rival; None, and a line that says so, if its file cannot be had."""
    try:
        return rival()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"left out: {error}: give --source", file=sys.stderr)
        return None


def checkouts_in(words: list[str]) -> dict[str, str]:
    """The folders of ``--source NAME=DIR``."""
    found = dict(word.split("=", 1) for word in words if "=" in word)
    unknown = [name for name in found if name not in SOURCES or not Path(found[name]).is_dir()]
    if unknown or len(found) != len(words):
        raise SystemExit(f"--source takes NAME=DIR, with a git checkout of {' or '.join(SOURCES)}")
    return found
