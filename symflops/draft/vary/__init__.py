"""Finds which numbers of a config and its inputs can be varied, alone or jointly; draws random states.

Works on plain data and a given trial function; runs no torch itself. Building and running a state belongs to ``sample``.
"""
