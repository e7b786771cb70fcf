"""What watching costs after the first step: a call beside ``meter.add``, and the fingerprint of a step by module.

    python benchmarks/watching.py [calls]

A call is timed with and without hooks, in pairs; the median of the differences is what the hooks cost. The limits are
30 us a call above ``meter.add(**streams_of(batch))``, and 0.5 us a module for the fingerprint.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from symflops.training.introspect.fingerprint import Fingerprint
from symflops.training.meter.batches import streams_of
from symflops.training.meter.mfu import MFUMeter

CALL, MODULE = 30e-6, 0.5e-6


def timed(function: Any) -> float:
    """Seconds of one call of ``function``."""
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def main() -> int:
    """Print both costs, and fail above the limits."""
    warnings.simplefilter("ignore")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=24, use_cache=False)).train()
    batch = {"input_ids": torch.ones(2, 8, dtype=torch.long), "attention_mask": torch.ones(2, 8, dtype=torch.long)}
    output = model(**batch)
    LlamaForCausalLM.forward = lambda self, input_ids=None, attention_mask=None: output  # the work of the model is left out
    quiet: dict[str, Any] = {"peak_tflops": 1.0, "log": lambda line: None}
    watching, adding = MFUMeter.of_model(model, **quiet), MFUMeter.of_model(model, **quiet)
    reader = next(iter(adding.phases.values())).estimator
    watching.watch(prove=False)
    pairs = []
    for place in range(count):
        hooked = timed(lambda: model(**batch))
        bare = timed(lambda: LlamaForCausalLM.forward(model, **batch))
        added = timed(lambda: adding.add(**streams_of(reader, batch)))
        pairs.append(hooked - bare - added)
        if place % 20 == 19:
            watching.step(seconds=1.0)
            adding.step(seconds=1.0)
    call = statistics.median(pairs)
    one = Fingerprint(model)
    module = statistics.median(timed(one.changes) for _ in range(count)) / sum(1 for _ in model.modules())
    print(f"a watched call costs {call * 1e6:.1f} us above meter.add (limit {CALL * 1e6:.0f}), of {added * 1e6:.1f} us")
    print(f"the fingerprint of a step costs {module * 1e6:.3f} us a module (limit {MODULE * 1e6:.1f})")
    return int(call > CALL or module > MODULE)


if __name__ == "__main__":
    sys.exit(main())
