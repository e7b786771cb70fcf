"""A brute-force oracle: every repeat unrolled, plain integers, nothing shared with the package."""
