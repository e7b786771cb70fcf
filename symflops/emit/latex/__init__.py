"""The LaTeX target: a derivation as a document that pdflatex compiles.

What a page holds is decided in ``emit.page``.
Formulas are printed in ``emit.math``.
"""
