"""Vendored estimators for training frameworks: standalone code without symflops, a test, and a page."""

from symflops.emit.vendor.files import files_of

__all__ = ["files_of"]
