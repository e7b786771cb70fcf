"""Folds the steps of one tape: equal items of a module list become a loop, unequal ones branches of its body.

Works on the steps of a single sample, without formulas; those belong to ``fit``.
"""
