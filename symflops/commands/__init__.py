"""What the larger commands do on disk: check, new, generate, site.

Arguments and printing belong to ``cli``.
Everything derived comes from the driver.
"""
