"""Mathematics: the expression language of specs, integer functions independent of the sympy release, 0/1 conditions,
polynomials, counts of attention pairs, and formulas for the output languages.
"""
