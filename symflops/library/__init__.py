"""Looks up specs by name or class, creates estimators from configs, and caches derived programs.

``catalog``, ``lookup`` and ``cache`` import neither sympy nor YAML, except to derive a program on a cache miss.
"""
