"""lower: Derivations -> Program. Closed forms: coefficients in sizes, moments in lengths.

sympy ends here: a program holds plain formulas.
Public function: :func:`symflops.lower.lower.lower`.
"""
