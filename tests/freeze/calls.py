"""Small real calls of every command: their exit codes, what they print where, and the structure of their JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.freeze.calling import call, working_at
from tests.freeze.cases import ROOT
from tests.freeze.shapes import shape

SPEC = """language: 2
name: tiny
sizes: {D: {key: width, default: 8, doc: width}, E: {key: inner, default: 16, doc: inner width}}
streams: {text: [x]}
inputs: {h: {stream: text, width: D, layout: b x D}}
graph:
  - up: {op: linear, from: h, width: E, bias: false, to: u}
  - down: {op: %s, from: u, width: D, bias: false, to: y}
outputs: [y]
"""
LLAMA = '{"text": [7]}'
RECORD = {
    "id": "torch/Linear/a", "package": "torch.nn", "version": "2", "torch": "2", "class": "Linear", "config_json": {"in_features": 3, "out_features": 5},
    "inputs": {"input": {"shape": [2, 2, 3], "dtype": "float32"}}, "params_total": 20, "params_by_tensor": {"weight": 15, "bias": 5},
    "fwd_flops": 120, "bwd_flops": 120, "by_module_fwd": {},
}  # fmt: skip
PEERS = [{"system": "verl", "id": "verl/0"}, {"system": "nobody", "id": "nobody/0", "flops": 1}]
CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 6, "vocab_size": 131}

CALLS: dict[str, tuple[str, ...]] = {
    "no command": (),
    "help": ("--help",),
    "version": ("--version",),
    "unknown command": ("nonsense",),
    "command help": ("estimate", "--help"),
    "unknown option": ("list", "--nonsense"),
    "list": ("list",),
    "list json": ("list", "--json"),
    "list regimes json": ("list", "regimes", "--json"),
    "list conventions json": ("list", "conventions", "--json"),
    "list blocks json": ("list", "blocks", "--json"),
    "list operators json": ("list", "operators", "--json"),
    "list devices json": ("list", "devices", "--json"),
    "estimate": ("estimate", "llama", "--batch", LLAMA),
    "estimate json": ("estimate", "llama", "--batch", LLAMA, "--json"),
    "estimate found from a config": ("estimate", "--config", "config.json", "--batch", LLAMA, "--json"),
    "estimate in MACs": ("estimate", "llama", "--batch", "@batch.json", "--unit", "macs", "--convention", "torch", "--regime", "forward", "--json"),
    "estimate of a path": ("estimate", "tiny.yaml", "--batch", LLAMA, "--json"),
    "estimate without a model": ("estimate", "--batch", LLAMA),
    "estimate of the usual batch": ("estimate", "llama"),
    "estimate of a generation json": ("estimate", "sdxl", "--height", "512", "--width", "512", "--steps", "50", "--guidance", "--json"),
    "lengths of an image": ("lengths", "sdxl", "--height", "1024", "--width", "1024"),
    "unknown model": ("estimate", "lama", "--batch", LLAMA),
    "unknown stream": ("estimate", "llama", "--batch", '{"txt": [7]}'),
    "bad batch": ("estimate", "llama", "--batch", "["),
    "unknown regime": ("estimate", "llama", "--batch", LLAMA, "--regime", "ful"),
    "unknown convention": ("estimate", "llama", "--batch", LLAMA, "--convention", "torhc"),
    "missing config": ("estimate", "llama", "--batch", LLAMA, "--config", "nowhere.json"),
    "explain": ("explain", "tiny.yaml"),
    "explain json": ("explain", "tiny.yaml", "--json"),
    "explain an unknown model": ("explain", "lama"),
    "compare": ("compare", "tiny.yaml", "--regimes", "full,forward"),
    "compare json": ("compare", "tiny.yaml", "--regimes", "full,forward", "--batch", LLAMA, "--json"),
    "compare conventions without causes json": ("compare", "llama", "--conventions", "megatron,verl", "--batch", LLAMA, "--table", "--json"),
    "compare conventions json": ("compare", "llama", "--conventions", "megatron,verl", "--batch", LLAMA, "--json"),
    "check fine": ("check", "tiny.yaml"),
    "check fine json": ("check", "tiny.yaml", "--output-format", "json"),
    "check findings": ("check", "broken.yaml"),
    "check findings json": ("check", "broken.yaml", "--output-format", "json"),
    "check findings github": ("check", "broken.yaml", "--output-format", "github"),
    "check an unknown spec": ("check", "nowhere.yaml"),
    "check explains a kind": ("check", "--explain", "unknown-operator"),
    "check explains no kind": ("check", "--explain", "nonsense"),
    "derive findings": ("graph", "broken.yaml"),
    "graph": ("graph", "tiny.yaml"),
    "graph dot": ("graph", "tiny.yaml", "--format", "dot"),
    "schema": ("schema",),
    "schema of a regime": ("schema", "regime", "-o", "regime.json"),
    "new": ("new", "mine", "-o", "started"),
    "new like an unknown spec": ("new", "mine", "--like", "lama", "-o", "started"),
    "generate": ("generate", "tiny.yaml", "--specs", "library", "--out", "made"),
    "generate fine": ("generate", "tiny.yaml", "--specs", "library", "--out", "made", "--check"),
    "generate drift": ("generate", "tiny.yaml", "--specs", "library", "--out", "elsewhere", "--check"),
    "generate without a folder": ("generate", "tiny.yaml"),
    "render markdown": ("render", "tiny.yaml", "--format", "markdown"),
    "render latex fragments": ("render", "tiny.yaml", "--format", "latex", "--fragment", "-o", "pieces"),
    "render without a format": ("render", "tiny.yaml"),
    "skeleton": ("skeleton", "tiny.yaml", "-o", "tiny_skeleton.py"),
    "site": ("site", "tiny.yaml", "-o", "public"),
    "verify records exact json": ("verify", "linear", "--records", "exact", "--strict", "--json"),
    "verify records drift": ("verify", "linear", "--records", "drift", "--json"),
    "verify no records": ("verify", "linear", "--records", "nowhere"),
    "verify": ("verify", "linear"),
    "census stale": ("census", "tiny.yaml", "--check"),
    "verify in a regime json": ("verify", "linear", "--regime", "full", "--json"),
    "draft json": ("draft", "module.py:Tiny", "--config", "sizes.json", "--inputs", "inputs.json", "--json"),
    "trace of no class": ("trace", "nowhere:Thing"),
    "draft without inputs": ("draft", "module.py:Tiny"),
    "conform json": ("conform", "--peers", "peers", "--json"),
    "conform without peers": ("conform", "--peers", "nowhere"),
    "cache": ("cache",),
    "migrate check": ("migrate", "tiny.yaml", "--check"),
    "reading check": ("reading", "linear", "--check"),
    "device": ("device", "NVIDIA H200"),
    "device json": ("device", "NVIDIA H200", "--json"),
    "device unknown json": ("device", "Nonsense", "--json"),
    "devices json": ("device", "--json"),
    "mfu": ("mfu", "--flops", "1e15", "--seconds", "10", "--peak", "354"),
    "mfu json": ("mfu", "--flops", "1e15", "--seconds", "10", "--peak", "NVIDIA H200", "--json"),
    "mfu of a model json": ("mfu", "llama", "--batch", LLAMA, "--seconds", "10", "--devices", "8", "--peak", "h100", "--json"),
    "mfu of an unknown peak": ("mfu", "--flops", "1e15", "--seconds", "10", "--peak", "Nonsense"),
    "mfu of kernel details json": ("mfu", "--kernel-details", "kernels.csv", "--seconds", "10", "--peak", "354", "--json"),
    "mfu without work": ("mfu", "--seconds", "10", "--peak", "354"),
    "solve json": ("solve", "llama", "--for", "num_hidden_layers", "--flops", "1e21", "--tokens", "2e9", "--json"),
    "growth json": ("growth", "llama", "--batch", LLAMA, "--json"),
    "budget json": ("budget", "llama", "--tokens", "1e12", "--peak", "354", "--mfu", "0.4", "--json"),
    "vendor": ("vendor", "llama", "--for", "verl", "--out", "tree"),
    "vendor check of nothing": ("vendor", "llama", "--for", "verl", "--out", "elsewhere", "--check"),
    "diff json": ("diff", "llama", "mistral", "--batch", LLAMA, "--json"),
    "corpus query": ("corpus", "llama", "--columns", "text=n_tokens", "--lengths", "corpus.lengths", "--sql", "spark"),
    "corpus result json": ("corpus", "llama", "--columns", "text=n_tokens", "--from", "sums.json", "--json"),
    "corpus groups json": ("corpus", "llama", "--columns", "text=n_tokens", "--from", "sums.json", "--group-by", "shard", "--json"),
    "corpus of a float": ("corpus", "llama", "--columns", "text=n_tokens", "--from", "floats.json"),
    "corpus without a table": ("corpus", "llama", "--columns", "text=n_tokens"),
    "completion": ("completion", "bash"),
    "completion of no shell": ("completion", "csh"),
    "words that complete": ("completion", "words", "--", "explain", "qwen3_n"),
}


def files() -> dict[str, str]:
    """The files that the calls read, by their path below the folder in which they run."""
    tiny = SPEC % "linear"
    module = (
        "import torch\n\n\nclass Tiny(torch.nn.Module):\n    def __init__(self, width=8, inner=16):\n        super().__init__()\n"
        "        self.up = torch.nn.Linear(width, inner)\n\n    def forward(self, x):\n        return self.up(x)\n"
    )
    sums = {"n_rows": 3, "n_e8a3e06b6ac4": 2, "s_430bbb1c728e": 7, "s_fb317424aab5_hi": 0, "s_fb317424aab5_lo": 25, "shard": "a"}
    peer = json.loads((ROOT / "tests" / "data" / "peers" / "verl.json").read_text("utf-8"))[:2]
    return {
        "sums.json": json.dumps([sums]), "floats.json": json.dumps(sums | {"s_430bbb1c728e": 7.0}),
        "tiny.yaml": tiny, "library/nn/tiny.yaml": tiny, "library/blocks/.keep": "", "broken.yaml": SPEC % "liner",
        "config.json": json.dumps(CONFIG), "batch.json": LLAMA, "module.py": module, "sizes.json": '{"width": 12, "inner": 20}',
        "inputs.json": '{"x": {"shape": [2, 6, 12], "dtype": "float32"}}',
        "exact/a.json": json.dumps([RECORD]), "drift/a.json": json.dumps([RECORD | {"fwd_flops": 121}]),
        "peers/verl.json": json.dumps(peer), "peers/nobody.json": json.dumps(PEERS[1:]), "kernels.csv": "Name,aic_cube_fops\na,100\nb,N/A\n",
    }  # fmt: skip


def every_call() -> dict[str, dict[str, Any]]:
    """What each call did, run in their order in a new folder."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache, working_at(Path(folder), Path(cache)):
        for name, text in files().items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return {name: told(name, words) for name, words in CALLS.items()}


def told(name: str, words: tuple[str, ...]) -> dict[str, Any]:
    """The words of a call, its exit code, what it prints to standard output, and the structure of that where it is JSON."""
    done = call(*words)
    found: dict[str, Any] = {"words": list(words), "exit": done.code, "prints": "text" if done.out else "nothing"}
    if done.out and {"json", "--json"} & set(words):
        found |= {"prints": "json", "json": shape(json.loads(done.out))}
    return found
