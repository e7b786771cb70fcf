"""lower: Derivations -> Program. Closed forms: coefficients in sizes, moments in lengths.

No sympy beyond this package: a program holds plain formulas.
Public function: :func:`symflops.lower.lower.lower`.
"""
