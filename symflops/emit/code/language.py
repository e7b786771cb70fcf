"""The interface of a programming language: how it writes statements and rows of tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from symflops.emit.code.printer import CodePrinter
from symflops.model.program import Field


class Language(ABC):
    """Writes the statements and the rows of tables in one language."""

    @abstractmethod
    def printer(self) -> CodePrinter:
        """A printer of formulas whose names may be set."""

    @abstractmethod
    def assigned(self, name: str, text: str) -> str:
        """The statement that assigns an expression to a name."""

    @abstractmethod
    def remark(self, text: str) -> str:
        """A comment on its own line."""

    @abstractmethod
    def size(self, field: Field) -> str:
        """The expression that reads a size for formulas."""

    @abstractmethod
    def given(self, field: Field) -> str:
        """The condition that a nullable size is not null."""

    @abstractmethod
    def vector(self, cells: Sequence[str]) -> str:
        """A vector over the moments."""

    @abstractmethod
    def choice(self, useful: str, executed: str) -> str:
        """The choice between the vector of useful pairs and that of all pairs, by convention."""

    @abstractmethod
    def line(
        self, path: str, amount: str, counts: tuple[str, str], gradients: Sequence[str], again: str, what: str
    ) -> list[str]:
        """The cells of a row of work: module, amount, FLOPs of one and times forward, gradients, recomputed, contraction."""

    @abstractmethod
    def lines_at(self, path: str, block: str) -> str:
        """The row for a shared block of work at a path."""

    @abstractmethod
    def count(self, name: str, elements: str) -> list[str]:
        """The cells of a row of parameters."""

    @abstractmethod
    def counts_at(self, path: str, block: str) -> str:
        """The row for a shared block of parameters at a path."""
