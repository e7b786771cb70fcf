"""Writes a folded trace as the entries of a spec, with the fitted formulas, and prints it as YAML.

Recognises attention, experts and branches.
Making it read well belongs to ``polish``.
"""
