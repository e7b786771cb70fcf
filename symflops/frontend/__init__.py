"""read: text -> Spec, Regime, Convention and peer pages, with a finding for every mistake of form.

Mistakes of meaning (widths, rows, missing values) belong to ``build``.
Public function: :func:`symflops.frontend.read.read`.
"""
