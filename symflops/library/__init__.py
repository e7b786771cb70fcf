"""The specs of the package by name and class, the estimator of a config, and programs that were derived before.

``catalog``, ``lookup`` and ``cache`` import neither sympy nor YAML, except to derive on a miss.
"""
