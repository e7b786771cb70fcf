"""Drafts a spec from a real module: traces it, varies it, fits formulas, writes YAML, proves it.

A draft is exact or lists what differs: nothing here may guess or approximate. The meaning of specs belongs to ``read`` and
``build``, the command line to ``cli``.
"""
