"""What a programming language says about itself: how it writes the statements and the rows of tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from symflops.emit.code.printer import CodePrinter
from symflops.model.program import Field


class Language(ABC):
    """How a language writes the statements and the rows of tables."""

    @abstractmethod
    def printer(self) -> CodePrinter:
        """A printer of formulas, which names may be given to."""

    @abstractmethod
    def assigned(self, name: str, text: str) -> str:
        """The statement that gives an expression a name."""

    @abstractmethod
    def remark(self, text: str) -> str:
        """A comment that is a line."""

    @abstractmethod
    def size(self, field: Field) -> str:
        """A size that is read, as formulas take it."""

    @abstractmethod
    def given(self, field: Field) -> str:
        """Whether a size that may be null is not."""

    @abstractmethod
    def vector(self, cells: Sequence[str]) -> str:
        """A vector over the moments."""

    @abstractmethod
    def choice(self, useful: str, executed: str) -> str:
        """The vector of useful pairs, or that of all, as conventions differ."""

    @abstractmethod
    def line(
        self, path: str, amount: str, counts: tuple[str, str], gradients: Sequence[str], again: str, what: str
    ) -> list[str]:
        """The cells of a row of work: module, what it runs over, FLOPs of one and times forward, gradients, forward again."""

    @abstractmethod
    def lines_at(self, path: str, block: str) -> str:
        """The row that stands for a block of work at a path."""

    @abstractmethod
    def count(self, name: str, elements: str) -> list[str]:
        """The cells of a row of parameters."""

    @abstractmethod
    def counts_at(self, path: str, block: str) -> str:
        """The row that stands for a block of parameters at a path."""
