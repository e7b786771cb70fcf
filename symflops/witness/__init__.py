"""Witnesses: what the real model, built and run by the library that it comes from, says about a spec."""
