"""A folded, fitted trace as the entries of a spec, then as YAML.

Recognises attention, experts and branches.
Making it read well belongs to ``polish``.
"""
