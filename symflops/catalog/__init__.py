"""Finds specs, blocks, regimes and conventions on disk, and the estimator of a config.

``library`` reads spec files. ``catalog``, ``lookup`` and ``cache`` import neither sympy nor YAML, except to derive on a miss.
"""
