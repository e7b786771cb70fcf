"""derive: Graph, Regime -> Derivation. Which contractions run in both passes, how often, and why.

Counting rules belong to ``count``, closed forms to ``lower``.
Public function: :func:`symflops.derive.derive.derive`.
"""
