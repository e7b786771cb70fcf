"""Traces real classes with symbolic sizes: their own closed forms, and the domain on which they hold."""
