"""The mathematics: expressions of specs, integer functions that print the same in every sympy, 0/1 conditions, polynomials,
pair counts, and closed forms as the output languages print them.
"""
