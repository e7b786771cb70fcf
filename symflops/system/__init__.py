"""Access to the operating system: atomic writes, digests, worker processes.

Nothing here knows specs or models. Standard library only.
"""
