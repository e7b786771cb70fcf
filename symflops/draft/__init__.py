"""Drafts a spec from a real module: ``draft.draft`` tapes it, varies it, fits formulas, writes YAML, and proves the result.

Only this package and ``witness`` run torch. A draft is exact or says what differs: nothing here may guess or approximate.
What a spec means belongs to ``frontend`` and ``build``; the command line to ``cli``.
"""
