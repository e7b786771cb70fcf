"""What the commands check, new, generate and site do on disk; arguments and printing belong to ``cli``."""
