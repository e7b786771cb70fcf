"""Estimators in the form that training frameworks ask of a model's author: with a test, a page, and no symflops."""

from symflops.emit.vendor.files import files_of

__all__ = ["files_of"]
