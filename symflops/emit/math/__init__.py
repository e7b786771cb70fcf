"""Formulas as LaTeX math: printing, line breaks, abbreviations.

Shared by the LaTeX, Markdown and HTML targets.
No prose belongs here.
"""
