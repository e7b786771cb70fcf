"""Public names for looking up shipped estimators; the code is :mod:`symflops.catalog.lookup`."""

from symflops.catalog.lookup import UnknownModelError, by_config, by_name, catalogs, estimate, estimator, read_config

__all__ = ["UnknownModelError", "by_config", "by_name", "catalogs", "estimate", "estimator", "read_config"]
