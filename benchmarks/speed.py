"""How fast estimators are beside other ways to the same number, all timed in one run.

    python benchmarks/speed.py [--json] [--quick]

Each rival is the published formula of a framework, written out here, on the config object that it is called with; the two are
timed in turns, and the medians are compared. ``--quick`` leaves out what takes seconds (whole processes). Exit code 1: a ratio
is not met.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from symflops.generated.language import gemma3, llama

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 31


def timed(work: Callable[[], object], number: int) -> float:
    """Seconds for one run of ``work``, over ``number`` of them."""
    start = time.perf_counter()
    for _ in range(number):
        work()
    return (time.perf_counter() - start) / number


def medians(works: list[Callable[[], object]], number: int) -> list[float]:
    """The median time of each, all in turns so that a busy machine slows all alike."""
    found: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(ROUNDS):
        for place, work in enumerate(works):
            found[place].append(timed(work, number))
    return [statistics.median(times) for times in found]


def config_object(fields: dict[str, object]) -> object:
    """The config as a trainer holds it: a class of transformers where that is installed."""
    try:
        from transformers import AutoConfig
    except ImportError:
        return SimpleNamespace(**fields)
    return AutoConfig.for_model(**fields)


def dense_loop(config, lengths):
    """verl's form for dense decoders: six FLOPs per weight and token, a loop for the squares."""
    width = config.hidden_size
    head = getattr(config, "head_dim", None) or width // config.num_attention_heads
    queries, keys = config.num_attention_heads * head, config.num_key_value_heads * head
    weights = (width * (2 * queries + 2 * keys) + 3 * width * config.intermediate_size) * config.num_hidden_layers
    weights += 2 * config.vocab_size * width
    squares = 0
    for length in lengths:
        squares += length * length
    return 6 * weights * sum(lengths) + 6 * squares * head * config.num_attention_heads * config.num_hidden_layers


def window_loop(config, lengths):
    """verl's form for decoders some of whose layers have a window: a loop over layers and, in it, over lengths."""
    width, head = config.hidden_size, config.head_dim
    queries, keys = config.num_attention_heads * head, config.num_key_value_heads * head
    weights = (width * (2 * queries + 2 * keys) + 3 * width * config.intermediate_size) * config.num_hidden_layers
    weights += 2 * config.vocab_size * width
    pairs = 0
    for kind in config.layer_types:
        if kind == "sliding_attention":
            for length in lengths:
                pairs += length * min(length, config.sliding_window)
        else:
            for length in lengths:
                pairs += length * length
    return 6 * weights * sum(lengths) + 6 * pairs * head * config.num_attention_heads


def megatron(args, tokens, squares):
    """Megatron's form: everything from the arguments at every step, with its branches for experts, MTP and latent attention."""
    if args.num_experts is None:
        dense_layers, expert_layers, routed = args.num_layers, 0, 0
        last_layer_has_experts = 0
    else:
        if isinstance(args.moe_layer_freq, int):
            pattern = [1 if layer % args.moe_layer_freq == 0 else 0 for layer in range(args.num_layers)]
        else:
            pattern = args.moe_layer_freq
        expert_layers = sum(pattern)
        dense_layers = args.num_layers - expert_layers
        routed = args.moe_router_topk
        last_layer_has_experts = pattern[-1]
    if args.mtp_num_layers is not None:
        extra = args.mtp_num_layers
        expert_layers += last_layer_has_experts * extra
        dense_layers += (1 - last_layer_has_experts) * extra
        layers = args.num_layers + extra
    else:
        extra, layers = 0, args.num_layers
    expert_width = args.moe_ffn_hidden_size if args.moe_ffn_hidden_size is not None else args.ffn_hidden_size
    shared_width = 0 if args.moe_shared_expert_intermediate_size is None else args.moe_shared_expert_intermediate_size
    groups = args.num_query_groups if args.group_query_attention else args.num_attention_heads
    gated = 3 / 2 if args.swiglu else 1
    if args.multi_latent_attention:
        raise NotImplementedError
    queries = args.kv_channels * args.num_attention_heads
    keys = args.kv_channels * groups
    attention = 3 * 2 * layers * (tokens * args.hidden_size * (queries + 2 * keys + queries) + queries * squares)
    dense = 3 * 2 * 2 * gated * tokens * args.hidden_size * args.ffn_hidden_size * dense_layers
    experts = 3 * 2 * 2 * gated * tokens * args.hidden_size * (expert_width * routed + shared_width) * expert_layers
    predicted = 3 * 2 * tokens * extra * (3 * args.hidden_size + 2 * args.hidden_size * args.hidden_size)
    head = 3 * 2 * tokens * args.hidden_size * args.padded_vocab_size * (extra + 1)
    return attention + dense + experts + predicted + head


LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
}
GEMMA = {"model_type": "gemma3_text"}


def rows(quick: bool) -> list[tuple[str, str, float, float, float]]:
    """Work, rival, seconds of the rival, our seconds, and the share of the rival's that ours may be."""
    found = []
    draw = np.random.default_rng(0)
    config = config_object(LLAMA)
    one = llama.Estimator(llama.Sizes.from_config(LLAMA))
    sums = one.moments(text=[4096] * 8)
    arguments = argparse.Namespace(
        hidden_size=4096, ffn_hidden_size=11008, num_layers=32, num_attention_heads=32, kv_channels=128
    )
    vars(arguments).update(num_query_groups=32, group_query_attention=False, swiglu=True, padded_vocab_size=32000)
    vars(arguments).update(num_experts=None, moe_layer_freq=1, moe_router_topk=2, moe_ffn_hidden_size=None, mtp_num_layers=None)
    vars(arguments).update(moe_shared_expert_intermediate_size=None, multi_latent_attention=False)
    rival, ours = medians([lambda: megatron(arguments, sums.x, sums.xx), lambda: one.total(sums)], 2000)
    found.append(("cost of a step, moments given", "Megatron's formula", rival, ours, 1 / 8))
    for count, share in ((8, 1 / 5), (512, 1 / 3)):
        lengths = [int(length) for length in draw.integers(1, 8192, count)]
        works = [
            lambda lengths=lengths: dense_loop(config, lengths),
            lambda lengths=lengths: one.total(one.moments(text=lengths)),
        ]
        rival, ours = medians(works, 500)
        found.append((f"{count} lengths, a list", "verl's loop", rival, ours, share))
    lengths = draw.integers(1, 8192, 100_000)
    listed = lengths.tolist()
    rival, ours, passes = medians(
        [lambda: dense_loop(config, listed), lambda: one.total(one.moments(text=lengths)), lambda: lengths.sum()], 5
    )
    found.append(("100,000 lengths, an array", "verl's loop", rival, ours, 1 / 30))
    found.append(("the same", "8 passes of ndarray.sum()", 8 * passes, ours, 1.0))
    gemma = config_object(GEMMA)
    window = gemma3.Estimator(gemma3.Sizes.from_config(gemma.to_dict() if hasattr(gemma, "to_dict") else {}))
    rival = statistics.median(timed(lambda: window_loop(gemma, listed), 1) for _ in range(3))
    ours = statistics.median(timed(lambda: window.total(window.moments(text=lengths)), 3) for _ in range(ROUNDS))
    found.append(("100,000 lengths, layers with a window", "verl's loop", rival, ours, 1 / 400))
    if not quick:
        found += processes()
    return found


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


def processes() -> list[tuple[str, str, float, float, float]]:
    """Whole processes: an estimate from the command line, and from a YAML file to everything that is written of it."""

    def run(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})

    batch = '{"latent": [4096], "prompt": [256]}'
    words = (sys.executable, "-m", "symflops.cli.main", "estimate", "qwen_image", "--batch", batch, "--json")
    ours = statistics.median(timed(lambda: run(*words), 1) for _ in range(11))
    rival = statistics.median(timed(lambda: run(sys.executable, "-c", COUNTED), 1) for _ in range(3))
    found = [("symflops estimate, Qwen-Image 20B, whole process", "FlopCounterMode", rival, ours, 1 / 40)]
    from symflops.cli.main import main as command

    with tempfile.TemporaryDirectory() as folder:

        def generate() -> None:
            out = Path(folder) / str(time.perf_counter_ns())
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                command(["generate", "llama", "--specs", str(ROOT / "specs"), "--out", str(out)])

        generate()
        warm = statistics.median(timed(generate, 1) for _ in range(7))
        site = timed(lambda: run(sys.executable, "-m", "symflops.cli.main", "site", "-o", str(Path(folder) / "site")), 1)
    found.append(("YAML to all files, one spec, warm process", "0.25 s", 0.25, warm, 1.0))
    return [*found, ("the site of all shipped models, two cores", "3 minutes", 180.0, site, 1.0)]


def readable(seconds: float) -> str:
    for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    found = rows(options.quick)
    if options.json:
        names = ("work", "rival", "rival_seconds", "seconds", "at_most")
        print(json.dumps([dict(zip(names, row, strict=True)) for row in found], indent=1))
    else:
        print("| work | rival | rival's time | ours | ratio | at most |\n|---|---|---|---|---|---|")
        for work, rival, theirs, ours, share in found:
            mark = "" if ours <= theirs * share else " (missed)"
            limit = f"1/{round(1 / share)}" if share < 1 else "1"
            print(f"| {work} | {rival} | {readable(theirs)} | {readable(ours)} | 1/{theirs / ours:.3g}{mark} | {limit} |")
    return int(any(ours > theirs * share for _, _, theirs, ours, share in found))


if __name__ == "__main__":
    sys.exit(main())
