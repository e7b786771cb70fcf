"""The Python target: an estimator module for Python 3.10 or later, which imports what modules share, or holds it.

What other languages share belongs to ``emit.code``.
"""
