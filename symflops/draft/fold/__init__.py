"""Equal items of a module list as one loop, unequal ones as branches of its body.

Works on the steps of one trace.
Formulas belong to ``fit``.
"""
