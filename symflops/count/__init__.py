"""count: Derivation, Convention -> Derivation, reduced to the work that the convention counts.

Conventions are data; this package names none.
Public function: :func:`symflops.count.count.count`.
"""
