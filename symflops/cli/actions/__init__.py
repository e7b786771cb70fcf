"""Work on disk of the commands check, new, generate and site; arguments and printing belong to ``cli``."""
