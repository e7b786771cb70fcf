"""Fits exact formulas to vectors over samples: dimensions, counts, conditions, defaults.

Nothing is approximated: a formula holds at every sample, or it is none. YAML belongs to ``write``.
"""
