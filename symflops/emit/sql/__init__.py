"""SQL: sums over a table of lengths as one aggregate query.

Imports no other output language.
"""
