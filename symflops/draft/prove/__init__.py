"""A draft against the real module at sizes that the fit never saw.

Parameters and both passes under several regimes.
The only verdict that a user sees.
"""
