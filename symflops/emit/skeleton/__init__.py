"""A plain PyTorch module of a graph, to run, count and train what a spec describes.

:mod:`~symflops.emit.skeleton.module` walks the graph, :mod:`~symflops.emit.skeleton.operators` has a line or two per operator
kind, and ``helpers.py.txt`` has the functions that these lines call.
"""
