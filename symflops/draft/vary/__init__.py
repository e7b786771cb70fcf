"""Variations: which numbers of a config and its inputs move, alone or together, and random states of them.

Works on plain data and a trial that it is given; runs no torch itself. Building and running a state belongs to ``sample``.
"""
