"""The Markdown targets: derivation pages, notebook output, the table of verified records.

``emit.page`` decides the contents of a page, ``emit.math`` prints formulas.
"""
