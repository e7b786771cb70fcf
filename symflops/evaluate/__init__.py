"""Evaluates programs: reads configs and batches, computes moments, and multiplies them by coefficients.

Imports neither sympy nor YAML. ``specialise`` and its callers evaluate a program partially and return a program.
"""
