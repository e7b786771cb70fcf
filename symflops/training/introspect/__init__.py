"""Reads class, config and regime from a live torch module, and checks its parameters against the spec."""
