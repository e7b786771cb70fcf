"""Architectures from papers: PyTorch modules, which stand beside their specs, at drawn configs; a module is ``tests.papers.NAME``."""

from symflops.read.spec_files import shipped

__path__ = [*__path__, str(shipped("specs") / "papers")]
