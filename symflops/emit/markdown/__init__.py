"""The Markdown targets: derivation pages, notebook output, the table of verified records.

What a page holds is decided in ``emit.page``.
Formulas are printed in ``emit.math``.
"""
