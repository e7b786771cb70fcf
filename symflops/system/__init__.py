"""What touches the operating system: whole-file writes, digests, worker processes.

No knowledge of specs or models belongs here.
Standard library only.
"""
