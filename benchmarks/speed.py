"""How fast estimators and meters are beside other ways to the same number, and beside what the hardware allows.

    python benchmarks/speed.py [--json] [--quick] [--source megatron-lm=DIR] [--source verl=DIR]

Rivals are the real functions of Megatron-LM and verl at a stated commit (``peers.py``; of a git checkout, else from GitHub), or
the fewest passes of numpy, torch or C to the same sums. Both sides get the same form of input, and are timed in turns: CPU
time, medians. Each row has the share of the rival's time that ours may be; on a device, kernels and waits are counted.
``--quick`` leaves out whole processes. Exit code 1: a limit is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import peers
import torch
import yaml
from symflops.generated.diffusion import qwen_image
from symflops.generated.language import gemma3, llama
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig

import symflops
from symflops.evaluate import boundaries
from symflops.evaluate.lengths import of_cu_seqlens, of_mask, of_position_ids
from symflops.read.yaml_nodes import _document, read_yaml
from symflops.support.findings import Source

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 31
UNBOUND = float("inf")
"""No limit: a C loop has as many lanes as the machine, and the fewest passes of numpy take up to 19 times its time."""
PASS = 8192  # items at once in numpy: a longer inner product would take several threads


def cpu() -> float:
    """CPU seconds of this process and of those that it waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


def timed(work: Callable[[], object], number: int) -> float:
    """Seconds for one run of ``work``, over ``number`` of them."""
    start = cpu()
    for _ in range(number):
        work()
    return (cpu() - start) / number


def medians(works: list[Callable[[], object]], number: int, rounds: int = ROUNDS) -> list[float]:
    """The median time of each, all in turns so that a busy machine slows all alike."""
    found: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(rounds):
        for place, work in enumerate(works):
            found[place].append(timed(work, number))
    return [statistics.median(times) for times in found]


LLAMA: dict[str, object] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000,
}  # fmt: skip
GEMMA: dict[str, object] = {"model_type": "gemma3_text"}
MEGATRON = peers.Arguments(
    hidden_size=4096, ffn_hidden_size=11008, num_layers=32, num_attention_heads=32, kv_channels=128, swiglu=True,
    padded_vocab_size=32000, group_query_attention=False, seq_length=4096,
)  # fmt: skip
C = """
#include <stdint.h>
void windowed(const int64_t *x, int64_t count, int64_t w, int64_t *out) {
    int64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t v = x[i], m = v < w ? v : w, h = v < w / 2 ? v : w / 2;
        a += v; b += v * v; c += m; d += m * m; e += h; f += h * h;
    }
    out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f;
}
void pairs(const int64_t *x, const int64_t *y, int64_t count, int64_t *out) {
    int64_t a = 0, b = 0, c = 0, d = 0, e = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t v = x[i], u = y[i];
        a += v; b += u; c += v * v; d += v * u; e += u * u;
    }
    out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e;
}
"""


@dataclass(frozen=True)
class Row:
    """Work, its rival, what both take, the share of the rival's that ours may be, and in what both are told."""

    work: str
    rival: str
    theirs: float
    ours: float
    share: float
    unit: str = "s"

    @property
    def is_missed(self) -> bool:
        return self.ours > self.theirs * self.share


def compiled(folder: str) -> ctypes.CDLL | None:
    """The loops in C; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    (Path(folder) / "sums.c").write_text(C)
    subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", "sums.c", "-o", "sums.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(Path(folder) / "sums.so"))


def rows(quick: bool, checkouts: Mapping[str, str]) -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as folder:
        found = [
            *frameworks(checkouts),
            *meters(),
            *on_a_device(),
            *lengths_read(),
            *per_samples(),
            *over_arrays(compiled(folder)),
            specs_read(),
        ]
    return found if quick else [*found, *processes()]


def row(work: str, rival: str, theirs: Callable[[], object], ours: Callable[[], object], share: float, number: int) -> Row:
    """A row, both sides timed in turns."""
    return Row(work, rival, *medians([theirs, ours], number), share)


def frameworks(checkouts: Mapping[str, str]) -> list[Row]:
    """Steps beside the real functions of frameworks, list against list; ours refuse lengths that the class does not take."""
    draw, one = np.random.default_rng(0), llama.Estimator(llama.Sizes.from_config(LLAMA))
    formula, sums, found = peers.had(partial(peers.megatron, checkouts)), one.moments(text=[4096] * 8), []
    if formula is not None:
        works = (lambda: formula(MEGATRON, 8, sums.xx, sums.x)), (lambda: one.total(sums))
        found.append(row("a step, moments given", "Megatron-LM", *works, 1 / 8, 500))
    counter = peers.had(partial(peers.verl, checkouts, AutoConfig.for_model(**LLAMA)))
    if counter is None:
        return found
    for count, number, share in ((8, 200, 1 / 3), (512, 50, 1 / 2), (100_000, 1, 1 / 3)):
        given = draw.integers(1, 8192, count).tolist()
        both = partial(counter.estimate_flops, given, 1.0), partial(total, one, text=given)
        found.append(row(f"{count:,} lengths, a list", "verl", *both, share, number))
    counter = peers.verl(checkouts, AutoConfig.for_model(**GEMMA))
    window = gemma3.Estimator(gemma3.Sizes.from_config(AutoConfig.for_model(**GEMMA).to_dict()))
    given = draw.integers(1, 8192, 10_000).tolist()
    both = partial(counter.estimate_flops, given, 1.0), partial(total, window, text=given)
    return [*found, row("10,000 lengths, a list, layers with a window", "verl", *both, 1 / 20, 1)]


def total(estimator: Any, **batch: Any) -> int:
    """The cost of a batch."""
    return int(estimator.total(estimator.moments(**batch)))


def meters() -> list[Row]:
    """The meter beside the moments that it sums up."""
    draw, one = np.random.default_rng(0), llama.Estimator(llama.Sizes.from_config(LLAMA))
    meter, found = symflops.MFUMeter(one, devices=1, peak_tflops=1.0), []
    few, many = draw.integers(1, 8192, 8), draw.integers(1, 8192, 100_000)
    cases = (("8 lengths, a list", few.tolist(), 5, 200), ("8 lengths, a CPU tensor", torch.tensor(few), 2, 200))
    cases += (("100,000 lengths, an array", many, 2, 10), ("100,000 lengths, a list", many.tolist(), 2, 2))
    for name, given, share, number in cases:
        both = partial(one.moments, text=given), partial(meter.add, text=given)
        found.append(row(f"`meter.add`, {name}", "`moments`", *both, share, number))
    return found


class Kernels(TorchDispatchMode):
    """Counts what would run on a device, and what would wait for it; views do neither."""

    VIEWS = ("view", "select", "slice", "detach", "alias", "unsqueeze", "expand", "t.default", "transpose", "as_strided")
    WAITS = ("_local_scalar_dense", "nonzero", "equal", "masked_select", "is_nonzero", "unique", "item")

    def __init__(self) -> None:
        super().__init__()
        self.run = self.waits = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func).removeprefix("aten.")
        self.run += not name.startswith(self.VIEWS)
        self.waits += name.startswith(self.WAITS)
        return func(*args, **(kwargs or {}))


def on_a_device() -> list[Row]:
    """Kernels of one micro-batch, read and added: the most of four forms, whose tensors count as lying on a device."""
    one, draw = llama.Estimator(llama.Sizes.from_config(LLAMA)), np.random.default_rng(0)
    lengths = torch.tensor(draw.integers(1, 4096, 8))
    bounds = torch.cat((torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)))
    mask, ids = torch.arange(4096)[None] < lengths[:, None], torch.arange(4096)[None] % 1000
    forms = (lambda: lengths, lambda: of_cu_seqlens(bounds), lambda: of_mask(mask), lambda: of_position_ids(ids))
    run = waits = 0
    with mock.patch.object(boundaries, "HOST", "none"):
        for form in forms:
            meter = symflops.MFUMeter(one, devices=1, peak_tflops=1.0)
            meter.add(text=form())
            with Kernels() as counted:
                meter.add(text=form())
            run, waits = max(run, counted.run), max(waits, counted.waits)
    return [
        Row("`add` on a device, a micro-batch", "8 kernels", 8, run, 1, "kernels"),
        Row("`add` on a device, a micro-batch", "no wait", 0, waits, 1, "waits"),
    ]


def specs_read() -> Row:
    """All specs and blocks as nodes with places, beside libyaml's own objects without any."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "specs").rglob("*.yaml"))]

    def nodes() -> None:
        _document.cache_clear()
        for text in texts:
            read_yaml(Source("spec.yaml", text))

    def objects() -> None:
        for text in texts:
            yaml.load(text, Loader=yaml.CSafeLoader)

    return Row(f"reading YAML, {len(texts)} files", "libyaml", *medians([objects, nodes], 1, 5), 3)


def lengths_read() -> list[Row]:
    """Masks and boundaries beside the fewest passes over them."""
    found = []
    for dtype in (torch.bool, torch.int64):
        mask = (torch.arange(4096)[None] < torch.randint(1, 4096, (1024, 1))).to(dtype)

        def view(mask: torch.Tensor = mask) -> object:
            return (mask if mask.dtype == torch.bool else mask != 0).view(torch.uint8).sum(-1, dtype=torch.int32)

        name = str(dtype).removeprefix("torch.")
        found.append(row(f"`of_mask`, 1024 x 4096, {name}", "`view(uint8).sum`", view, partial(of_mask, mask), 1.5, 3))
    bounds = np.concatenate(([0], np.random.default_rng(0).integers(1, 8192, 100_000).cumsum()))
    for name, given in (("a tensor", torch.tensor(bounds)), ("an array", bounds), ("a list", bounds.tolist())):
        rival = partial(np.diff, given if isinstance(given, list) else bounds)
        found.append(row(f"`of_cu_seqlens`, 100,000, {name}", "`numpy.diff`", rival, partial(of_cu_seqlens, given), 3, 10))
    return found


def per_samples() -> list[Row]:
    """Costs per sample beside Horner's scheme, which does not ask whether 64 bits hold them."""
    one, draw = llama.Estimator(llama.Sizes.from_config(LLAMA)), np.random.default_rng(0)
    linear, square = one.coefficients["total"][-2:]
    many, most = draw.integers(1, 8192, 100_000), draw.integers(1, 8192, 10_000_000)
    listed = many.tolist()

    def blocked() -> object:
        out = np.empty_like(most)
        for start in range(0, len(most), 65_536):
            part = most[start : start + 65_536]
            np.multiply(part, square, out=out[start : start + 65_536])
            out[start : start + 65_536] += linear
            out[start : start + 65_536] *= part
        return out

    def horner() -> object:
        return (many * square + linear) * many

    return [
        row("`per_sample`, 100,000, an array", "Horner", horner, lambda: one.per_sample(text=many), 2, 10),
        row("`per_sample`, 100,000, a list", "via an array", lambda: one.per_sample(text=np.array(listed)).tolist(),
            lambda: one.per_sample(text=listed), 1.3, 2),
        row("`per_sample`, 10,000,000, an array", "Horner in blocks", blocked, lambda: one.per_sample(text=most), 1.5, 1),
    ]  # fmt: skip


def over_arrays(library: ctypes.CDLL | None) -> list[Row]:
    """Sums over arrays beside the fewest passes of numpy, and beside one loop in C, whose lanes are as wide as the processor's.

    numpy has no inner product of integers that uses these lanes: lengths are converted to floats, exact below 2**53.
    """
    draw, out = np.random.default_rng(0), np.zeros(6, np.int64)
    x, y = draw.integers(1, 8192, 100_000), draw.integers(1, 512, 100_000)
    one = gemma3.Estimator(gemma3.Sizes.from_config({}))
    two = qwen_image.Estimator(qwen_image.Sizes.from_config({}))
    windowed, pairs = partial(total, one, text=x), partial(total, two, latent=x, prompt=y)
    windows = [np.full(PASS, width, np.int32) for width in (4096, 2048)]

    def windows_passed() -> object:
        found = [0] * 6
        for start in range(0, len(x), PASS):
            part = x[start : start + PASS].astype(np.int32)
            for place, column in enumerate((part, *[np.minimum(part, width[: len(part)]) for width in windows])):
                floats = column.astype(np.float64)
                found[place] += int(np.add.reduce(column, dtype=np.int32))
                found[place + 3] += int(floats.dot(floats))
        return found, x.max()

    def pairs_passed() -> object:
        found = [0] * 5
        for start in range(0, len(x), PASS):
            one, two = x[start : start + PASS].astype(np.float64), y[start : start + PASS].astype(np.float64)
            sums = np.add.reduce(one), np.add.reduce(two), one.dot(one), one.dot(two), two.dot(two)
            found = [int(a) + b for a, b in zip(sums, found, strict=True)]
        return found, x.max(), y.max()

    works = "100,000 lengths, an array, layers with a window", "Qwen-Image, 100,000 pairs, arrays"
    found = [
        row(works[0], "passes of numpy", windows_passed, windowed, 1.5, 20),
        row(works[1], "passes of numpy", pairs_passed, pairs, 1.5, 20),
    ]
    if library is None:
        return found
    at = {name: ctypes.c_void_p(array.ctypes.data) for name, array in (("x", x), ("y", y), ("out", out))}
    count, window = ctypes.c_int64(100_000), ctypes.c_int64(4096)
    loops = (
        lambda: library.windowed(at["x"], count, window, at["out"]),
        lambda: library.pairs(at["x"], at["y"], count, at["out"]),
    )
    return [*found, row(works[0], "C", loops[0], windowed, UNBOUND, 20), row(works[1], "C", loops[1], pairs, UNBOUND, 20)]


COUNTED = """
import torch
from diffusers import QwenImageTransformer2DModel
from torch.utils.flop_counter import FlopCounterMode
with torch.device("meta"):
    model = QwenImageTransformer2DModel()
    text = dict(encoder_hidden_states=torch.zeros(1, 256, 3584))
    image = dict(hidden_states=torch.zeros(1, 4096, 64), timestep=torch.zeros(1), img_shapes=[(1, 64, 64)])
    with FlopCounterMode(display=False) as counter:
        model(**image, **text)[0].sum().backward()
print(counter.get_total_flops())
"""


def processes() -> list[Row]:
    """Whole processes: an estimate, and what is written of all specs, cold and after a run."""

    def run(*words: str) -> None:
        done = subprocess.run(words, capture_output=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
        assert done.returncode in (0, 1), done.stderr.decode()[-500:]  # 1: what is compared has changed

    def command(*words: str) -> Callable[[], None]:
        return lambda: run(sys.executable, "-m", "symflops.cli.main", *words)

    estimate = command("estimate", "qwen_image", "--batch", '{"latent": [4096], "prompt": [256]}', "--json")
    ours = statistics.median(timed(estimate, 1) for _ in range(11))
    rival = statistics.median(timed(lambda: run(sys.executable, "-c", COUNTED), 1) for _ in range(3))
    found = [Row("`symflops estimate`, Qwen-Image 20B", "FlopCounterMode", rival, ours, 1 / 40)]
    with tempfile.TemporaryDirectory() as folder:
        out, pages = ("--out", str(Path(folder) / "generated")), ("-o", str(Path(folder) / "site"))
        found.append(Row("`generate` of all specs, cold", "15 s", 15.0, timed(command("generate", *out), 1), 1.0))
        for words in (("generate", "--check", *out), ("verify", "--records", "tests/data/truth"), ("site", *pages)):
            if words[0] != "generate":
                command(*words)()
            name = " ".join(word for word in words[:2] if word not in ("-o", "--records"))
            found.append(Row(f"`{name}`, warm", "3 s", 3.0, timed(command(*words), 1), 1.0))
    return found


def readable(amount: float, unit: str) -> str:
    """A time, or a count with its unit."""
    if unit != "s":
        return f"{amount:g} {unit}"
    for size, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if amount >= size:
            return f"{amount / size:.3g} {name}"
    return f"{amount / 1e-9:.3g} ns"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--source", action="append", default=[], metavar="NAME=DIR", help="a git checkout of a rival")
    options = parser.parse_args()
    found = rows(options.quick, peers.checkouts_in(options.source))
    if options.json:
        print(json.dumps([asdict(row) for row in found], indent=1))
    else:
        print("| work | rival | rival's | ours | ratio | at most |\n|---|---|---|---|---|---|")
        for row in found:
            mark = " (missed)" if row.is_missed else ""
            parts = (ratio(row.ours / row.theirs) if row.theirs else "-") + mark, ratio(row.share)
            amounts = (readable(amount, row.unit) for amount in (row.theirs, row.ours))
            print(f"| {' | '.join((row.work, row.rival, *amounts, *parts))} |")
    return int(any(row.is_missed for row in found))


def ratio(share: float) -> str:
    """A share as a fraction of one, or as a multiple; ``-`` where there is no limit."""
    if share == UNBOUND:
        return "-"
    return f"1/{1 / share:.3g}" if share < 1 else f"{share:.2g}x"


if __name__ == "__main__":
    sys.exit(main())
