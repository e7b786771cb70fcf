"""A derivation page free of markup: its tables, formulas, figures and analysis.

Markup belongs to ``latex``, ``markdown`` and ``html``.
Public function: :func:`symflops.emit.page.page.page`.
"""
