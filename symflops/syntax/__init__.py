"""Text as frozen data with places: YAML nodes, plain values, expressions, identifiers.

Parsing only: what a node means is decided in ``frontend``, what an expression is worth in ``algebra``.
Nothing here evaluates or executes text.
"""
