"""Architectures from papers: PyTorch modules, which stand beside their specs, at drawn configs; a module is ``tests.papers.NAME``."""

from symflops.catalog.library import shipped

__path__ = [*__path__, str(shipped("specs") / "papers")]
