"""``python -m symflops`` is the command ``symflops``."""

from symflops.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
