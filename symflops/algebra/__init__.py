"""The mathematics: integer functions that print the same in every sympy, 0/1 conditions, polynomials, pair counts."""
