"""Text as frozen data that knows its place in the file: YAML nodes, plain values, expressions, identifiers.

Parsing only: ``frontend`` decides what a node means, ``algebra`` what an expression evaluates to. Nothing here evaluates or
executes text.
"""
