"""The fast subset: every stage and every folder of the package, in under a minute. ``python -m pytest -q -m fast`` runs it."""

from __future__ import annotations

# files, each with words of which a test's name has one; no words for a whole file
FAST: dict[str, tuple[str, ...]] = {
    # the stages, in their order
    "frontend/test_diagnostics.py": (),
    "frontend/test_extends.py": (),
    "frontend/test_variants.py": (),
    "build/test_experts.py": (),
    "build/test_repeats_over_lists.py": (),
    "build/test_structure.py": (),
    "derive/test_decode.py": (),
    "derive/test_reentrant.py": (),
    "count/test_module_conventions.py": (),
    "lower/test_number_or_list.py": (),
    "lower/test_position.py": (),
    "emit/test_abbreviations.py": (),
    "emit/test_fixed.py": (),
    "emit/test_folding.py": (),
    "emit/test_html.py": (),
    "emit/test_javascript.py": (),
    "emit/test_notebook.py": (),
    # what the stages are made of, and the oracle that judges them
    "algebra/test_polynomial.py": (),
    "algebra/test_truth.py": (),
    "diagnostics/test_goldens.py": (),
    "diagnostics/test_mistakes.py": (),
    "ops/test_convolution.py": (),
    "ops/test_laws.py": ("test_every_", "linear-"),
    "ops/test_matmul.py": (),
    "ops/test_norms.py": (),
    "ops/test_stacks.py": (),
    "ops/test_triangular.py": (),
    "oracle/test_faults.py": ("need ignores", "or adds", "squares are lost"),
    "oracle/test_interpreter.py": (),
    "system/test_files.py": (),
    # estimating, metering, commands
    "adapters/test_adapters.py": (),
    "catalog/test_cache.py": ("test_the_config", "test_another_structure"),
    "cli/test_commands.py": ("test_estimate", "test_macs", "test_a_batch", "test_padded"),
    "cli/test_render.py": (),
    "commands/test_generate.py": ("test_elsewhere",),
    "devices/test_peaks.py": (),
    "meter/test_accumulate.py": (),
    "meter/test_mfu.py": (),
    "runtime/test_layouts.py": (),
    "runtime/test_passes.py": (),
    # against real models
    "draft/test_fit.py": (),
    "draft/test_fold.py": (),
    "draft/test_own_module.py": ("test_it_is_exact",),
    "draft/test_polish.py": (),
    "draft/test_tape.py": (),
    "records/test_inexact.py": (),
    "witness/test_live.py": ("test_exact", "test_a_dropped_bias"),
    "witness/test_own_class.py": (),
    "witness/test_records.py": ("LlamaForCausalLM", "QwenImageTransformer2DModel", "test_every_shipped"),
    # the project's own rules
    "freeze/test_contract.py": ("names", "arguments"),
    "project/test_layers.py": (),
    "project/test_tasks.py": (),
}
