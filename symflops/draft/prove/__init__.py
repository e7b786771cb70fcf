"""Proves a draft against the real module at sizes that its fit never saw: parameters, and both passes under several regimes.

The only verdict that a user sees. Nothing here changes a draft.
"""
