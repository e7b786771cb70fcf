"""The HTML target: a page with calculator, plot and diagram, and the index of a site.

``emit.page`` decides the contents of a page. It works from a file, without a network.
"""
