"""The Python target: a module with the formulas of a model, for Python 3.10 or later.

Code shared with other languages belongs to ``emit.code``.
"""
