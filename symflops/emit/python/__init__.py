"""The Python target: a stand-alone estimator module.

Standard library only in what it prints, Python 3.10 or later.
What other languages share belongs to ``emit.code``.
"""
