"""Peak rates of accelerators, from a table with its sources."""
