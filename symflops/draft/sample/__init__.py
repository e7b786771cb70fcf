"""Samples: one structure, traced at many sizes, with every number as a vector over the samples.

Builds, runs and folds the module in other states. Choosing numbers to vary belongs to ``vary``, formulas to ``fit``.
"""
