"""read: text -> Spec, Regime, Convention or peer page, with a finding for every mistake of form.

``build`` reports mistakes of meaning (widths, rows, missing values). Public function: :func:`symflops.frontend.read.read`.
"""
