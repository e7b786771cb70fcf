"""Operators: parameters, contractions and caption of each kind, one file a kind.

A new kind is one file and one line of :data:`symflops.ops.table.KINDS`.
"""
