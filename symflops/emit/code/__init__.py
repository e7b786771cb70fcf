"""Formulas and tables as source code, shared by all programming languages.

What only one language needs belongs to its own folder.
Nothing here writes a file.
"""
