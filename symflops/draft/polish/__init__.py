"""Entries as a person would write them: gates, residuals, calls of library blocks, merged variants.

Every rewrite keeps the meaning; the proof runs afterwards.
No formula is fitted here.
"""
