"""Exact formulas for the vectors of a sample: dimensions, counts, conditions, defaults.

Nothing is rounded: a formula holds at every sample or is not one.
YAML belongs to ``write``.
"""
