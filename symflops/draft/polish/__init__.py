"""Simplifies entries to the form a person would write: gates, residuals, block calls, merged variants.

Every rewrite keeps the meaning; the proof runs afterwards.
No formula is fitted here.
"""
