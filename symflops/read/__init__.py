"""read: text -> Spec, Regime, Convention or peer page, with a finding for every mistake of form.

``spec_files`` finds specs, blocks, regimes and conventions on disk; ``yaml_nodes`` keeps the place of each value. ``build``
reports mistakes of meaning (widths, rows, missing values). Public function: :func:`symflops.read.read.read`.
"""
