"""Evaluates programs: reads configs and batches, sums up lengths, multiplies; and what follows from a program alone.

Light to import: neither sympy nor YAML. ``specialise`` and what uses it evaluate a part of a program, and return a program.
"""
