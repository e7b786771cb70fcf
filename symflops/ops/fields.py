"""Fields of operators, and the form that the text of each field takes.

A field is an expression, the name of a value, or a path template; the form is fixed per field, never guessed. The fields of the
rest of the language (documents, sizes, repeats, regimes, ...) are in :mod:`symflops.read.field_tables`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from symflops.ir.convention import ROLES


class Form(Enum):
    """The forms in which a field of a YAML entry can be written; each value describes the form."""

    EXPRESSION = "an expression"
    EXPRESSIONS = "a list of expressions"
    LENGTHS = "a list of sizes and lengths"
    VALUES = "the name of a value, or a list of names"
    TEMPLATE = "a path"
    TIE = "a path from the root, or a mapping with known fields"
    WORD = "a word"
    AXES = "a mapping from axis to length"
    WINDOW = "a mapping from axis to size"
    NAME = "a name"
    TEXT = "a text"
    TEXTS = "a text, or a list of texts"
    FLAG = "true or false"
    COUNT = "a whole number"
    NUMBER = "a number, or a quotient such as 3/2"
    FIELDS = "a mapping with known fields"
    LIST = "a list of mappings with known fields"
    NAMED = "a mapping from names"
    CHOICE = "one word for all, or a mapping with known fields, each one of the words"
    GRAPH = "a list of entries"
    OTHER = "a form of its own"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a YAML entry.

    Attributes:
        name: The key.
        form: The form in which its value is written.
        doc: One line of documentation.
        required: Whether an entry must have it.
        default: The text that an entry without the field stands for; None if there is none.
        words: The words that it allows, if it is a word.
        fields: The fields that it has itself, if it is a mapping.
    """

    name: str
    form: Form
    doc: str
    required: bool = False
    default: str | None = None
    words: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()


def words_of(fields: Iterable[Field]) -> tuple[str, ...]:
    """The names of ``fields``, in order."""
    return tuple(field.name for field in fields)


ROLE = Field("role", Form.WORD, "the role that conventions count it under", words=tuple(ROLES))
COMMON = (
    Field("op", Form.WORD, "the kind of operator"),
    Field("from", Form.VALUES, "operands, in the operator's order"),
    Field("with", Form.VALUES, "combine the first operand elementwise with these before the operator"),
    Field("to", Form.VALUES, "names of the results; '_' drops one; default: the path as written"),
    Field("gate", Form.VALUES, "multiply the result by these"),
    Field("add_to", Form.VALUES, "add the result to this value"),
    Field("when", Form.EXPRESSION, "leave the entry out when false"),
    ROLE,
    Field("shared", Form.EXPRESSION, "the same path is used a second time on purpose"),
)

FROM = COMMON[1]
WEIGHT = Field("weight", Form.TEMPLATE, "path of the weight, relative to the entry's parent")
BIAS_NAME = Field("bias_name", Form.TEMPLATE, "path of the bias, relative to the entry's parent")
TIE = Field(
    "tie", Form.TIE, "the parameter that the weight is the same as",
    fields=(
        Field("to", Form.TEMPLATE, "its path from the root", required=True),
        Field("when", Form.EXPRESSION, "when it is the same; default: always"),
    ),
)  # fmt: skip
"""Field that reuses the parameter of another operator as the weight."""
