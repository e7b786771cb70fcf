"""Peak rates of accelerators, from a table that says its sources."""
