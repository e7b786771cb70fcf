"""Findings about what a user wrote, the exceptions that carry them, files, digests and worker processes.

Nothing here knows specs, models or formulas, or imports from the rest of the package.
"""
