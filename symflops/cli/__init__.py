"""The command line: one command a file, heavy things imported late, so that help and estimate answer at once."""
