"""Traces a real module: one run becomes a graph of contractions, then a plan of steps.

Runs torch; knows no formulas. Later folders read a plan as data without tensors.
"""
