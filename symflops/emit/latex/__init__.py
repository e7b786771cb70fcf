"""The LaTeX target: a derivation as a document that pdflatex compiles.

``emit.page`` decides the contents of a page, ``emit.math`` prints formulas.
"""
