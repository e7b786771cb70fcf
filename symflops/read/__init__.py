"""read: text -> Spec, Regime, Convention or peer page, with a finding for every syntax or schema error.

``spec_files`` finds specs, blocks, regimes and conventions on disk; ``yaml_nodes`` keeps the source location of each value.
``build`` reports semantic errors (widths, rows, missing values). Public function: :func:`symflops.read.read.read`.
"""
