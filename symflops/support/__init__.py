"""Diagnostics for user input, their exceptions, file access, digests and worker processes.

Nothing in this folder depends on specs, models or formulas, or imports from the rest of the package.
"""
