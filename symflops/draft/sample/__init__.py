"""Traces of one structure at many sizes: every number as a vector over the samples.

Which numbers move is decided in ``vary``.
Formulas belong to ``fit``.
"""
