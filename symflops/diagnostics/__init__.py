"""Findings about what a user wrote (place, code, message, hint) and the exceptions that carry them.

Nothing here knows specs, models or files, or imports from the rest of the package. Every layer above may report a finding.
"""
