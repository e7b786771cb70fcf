"""Proves a draft on the real module at held-out sizes: parameters, and both passes in several regimes.

The only verdict that a user sees. Nothing here changes a draft.
"""
