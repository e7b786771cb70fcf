"""Findings about what a user wrote: place, code, message and hint; and the exceptions that carry them.

No knowledge of specs, models or files belongs here.
Everything above may report a finding; nothing here imports from the rest of the package.
"""
