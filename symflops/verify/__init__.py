"""Witnesses: figures of real models and of other frameworks, compared with the derivation from a spec."""
