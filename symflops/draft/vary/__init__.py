"""Which numbers of a config and its inputs can move, alone or together.

Building and running the variations belongs to ``sample``.
Plain data, no torch.
"""
