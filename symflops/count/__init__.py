"""count: Derivation, Convention -> Derivation, reduced to the work that the convention counts.

Conventions are data; no convention's name stands here.
Public function: :func:`symflops.count.count.count`.
"""
