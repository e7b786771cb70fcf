"""Reads the module that a training loop holds: its class, config and regime, and checks every parameter of it."""
