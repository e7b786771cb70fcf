"""A run of a real module as a graph of contractions: tape, gate, steps.

Runs torch; knows nothing of formulas.
Later folders see a trace as plain data.
"""
