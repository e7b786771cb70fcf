"""Finding things: specs, blocks, regimes and conventions on disk; the estimator of a config; the cache.

Deriving belongs to the pipeline, which the cache calls on a miss.
``library`` reads files; ``lookup`` and ``loading`` import neither sympy nor YAML.
"""
