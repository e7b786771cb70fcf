"""Public names for looking up shipped estimators; the code is :mod:`symflops.library.lookup`."""

from symflops.library.lookup import UnknownModelError, by_config, by_name, catalogs, estimator, read_config
from symflops.library.naming import estimate

__all__ = ["UnknownModelError", "by_config", "by_name", "catalogs", "estimate", "estimator", "read_config"]
