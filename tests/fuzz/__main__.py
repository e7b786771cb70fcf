"""``python -m tests.fuzz``: the long run of the fuzzer."""

from __future__ import annotations

import sys

from tests.fuzz.run import main

if __name__ == "__main__":
    sys.exit(main())
