"""Formulas and tables as source code, shared by all programming languages.

Code for one language belongs to its own folder.
Nothing here writes a file.
"""
