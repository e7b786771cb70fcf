"""Folds the steps of one tape: module-list items become a loop, with branches where they differ.

Works on the steps of a single sample, without formulas; those belong to ``fit``.
"""
