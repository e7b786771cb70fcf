"""The HTML target: a page with calculator, plot and diagram, and the index of a site.

What a page holds is decided in ``emit.page``.
Works from a file, without a network.
"""
