"""Data about measured records, stored beside the specs: verified, published, and known to be inexact.

Comparing records with a derivation belongs to ``witness``. Reads and writes data files only.
"""
