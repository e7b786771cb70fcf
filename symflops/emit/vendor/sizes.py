"""Inputs of a vendored estimator: sizes from its project's config, and latents of diffusion models."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.emit.code.infix import PRODUCT, Language
from symflops.emit.code.sharing import Scope
from symflops.emit.python.printer import PYTHON, ModulePrinter, NullList, each, source
from symflops.emit.rendering import tuple_of, tuple_text
from symflops.emit.vendor.targets import Target
from symflops.evaluate import latents
from symflops.evaluate.latent_inputs import Switched, latent_inputs
from symflops.formula.formula import Formula, Num
from symflops.ir.program import Field, Program, needed

PRINT = ModulePrinter()
READ = '''def _field(config, names, default, *null):
    """The first of some fields that a config has; ``default`` if it has none, or ``null`` if one of them is None."""
    for name in names:
        value = config
        for word in name.split("."):
            value = value.get(word, ...) if hasattr(value, "get") else getattr(value, word, ...)
        if value is None:
            default = null[0] if null else default
        elif value is not ...:
            return value
    return default'''
LIST = '''def _list(value):
    """A list, or one that is null."""
    return _Null() if value is None else tuple(value)'''
ABSENT = {"number": "{} or 0", "count": "{} or 0", "rational": "{} or 0", "list": "_list({})"}
GIVEN = {"list": "tuple({})", "rational": "Fraction(repr({}))", "entries": "{0} if isinstance({0}, int) else len({0})"}


@dataclass(frozen=True)
class Reading:
    """Printer of the expressions with which an estimator reads sizes from a project's config.

    ``words`` are paths of fields in addition to those of ``target``; ``values`` are sizes that the config lacks, by letter.
    """

    program: Program
    target: Target
    words: Mapping[str, str]
    values: Mapping[str, Any] = field(default_factory=dict)

    def language(self) -> Language:
        """Return the Python syntax of statements that read sizes from the project's config."""
        return replace(PYTHON, size=self.size, given=lambda size: f"{self.found(size)} is not None")

    def word(self, size: Field) -> str:
        """Return the path of a field in a config whose fields the project names; empty if it lacks the field."""
        known = {**self.target.words, **self.words}
        return next((known[key] for key in size.keys if key in known), "")

    def has(self, size: Field) -> bool:
        """Whether the project's config has a field."""
        return self.target.reads != "words" or bool(self.word(size))

    def size(self, size: Field) -> str:
        """Print the expression that reads a size."""
        form = ABSENT.get(size.kind, "{}") if size.nullable else GIVEN.get(size.kind, "{}")
        return form.format(self.found(size))

    def found(self, size: Field) -> str:
        """Print the expression that reads a field, without conversion to a number."""
        config = self.target.config
        if self.target.reads == "arguments":
            return self.of_word(size, argument_of(size))
        if self.target.reads == "words":
            return self.of_word(size, path_text(config, self.word(size))) if self.word(size) else repr(self.values[size.letter])
        plain = (size.default is None and size.required) or isinstance(size.default, Num)
        alone = len(size.keys) == 1 and not size.nullable and self.null(size) in ("", "None")
        if self.target.reads == "attributes" and plain and alone:
            return f"{config}.{size.keys[0]}"
        if size.required:
            return f"_field({config}, {tuple_of(size.keys)}, None)"
        null = self.null(size)
        if null == "None" and len(size.keys) == 1 and self.target.reads == "mapping" and "." not in size.keys[0]:
            return f'{config}.get("{size.keys[0]}", {expression(size.default)})'
        return f"_field({config}, {tuple_of(size.keys)}, {expression(size.default)}{f', {null}' if null else ''})"

    def of_word(self, size: Field, text: str) -> str:
        """Print ``text``, with the default in place of None if the default depends on other sizes."""
        if size.nullable or is_plain(size.default):
            return text
        return f"{text} if {text} is not None else {expression(size.default)}"

    def null(self, size: Field) -> str:
        """Print the value that a size has if its field is null; empty if that is the default."""
        tables = absent_of(self.program)
        if any(key in tables for key in size.keys) or (not self.program.reading and size.null is None):
            return ""
        if size.null is not None:
            return expression(size.null)
        return "False" if size.kind == "flag" and not size.nullable else "None" if size.default is not None else ""

    def defaults(self, formulas: Iterable[Formula]) -> list[Formula]:
        """Return ``formulas`` and the default formulas of all sizes in them, of the sizes in these, and so on."""
        found = list(formulas)
        while True:
            letters = needed(found, self.program)
            given = [
                value
                for size in self.program.fields
                if size.letter in letters
                for value in (size.default, size.null)
                if value is not None and not isinstance(value, (bool, str, tuple))
            ]
            more = [value for value in given if value not in found]
            if not more:
                return found
            found += more


def expression(value: Any) -> str:
    """Print a default as a Python expression."""
    return repr(value) if value is None or isinstance(value, (bool, str, tuple)) else PRINT.text(value)


def is_plain(default: Any) -> bool:
    """Whether a default does not depend on other sizes."""
    return default is None or isinstance(default, (bool, str, tuple, Num))


def argument_of(size: Field) -> str:
    """Return the name of the argument for a size: its config field as an identifier."""
    return re.sub(r"\W", "_", size.keys[0])


def path_text(config: str, path: str) -> str:
    """Print the access to a path of a config.

    >>> path_text("config", "len:layers")
    'len(config.layers)'
    """
    return f"len({config}.{path.removeprefix('len:')})" if path.startswith("len:") else f"{config}.{path}"


def absent_of(program: Program) -> set[str]:
    """Return the config fields for which null means the default in some class that reads the config."""
    reading: Any = program.reading or {}
    return {name for table in reading.get("tables", {}).values() for name in _absent(table, "")}


def _absent(table: Mapping[str, Any], place: str) -> Iterator[str]:
    yield from (f"{place}{name}" for name in table.get("absent", ()))
    for name, inner in table.get("parts", {}).items():
        yield from _absent(inner, f"{place}{name}.")


def helpers(text: str) -> list[str]:
    """Return the source code of each helper function that ``text`` calls."""
    found = [READ] if "_field(" in text else []
    found += [source(NullList, "_Null"), LIST] if "_list(" in text else []
    found += [source(each, "_each")] if "_each(" in text else []
    return [one.replace("Any", "object") for one in found]


READERS = (
    latents.latent_lengths,
    latents.latent_rows,
    latents.sample_shape,
    latents.latent_sides,
    latents.packed_tokens,
    latents.block_lengths,
    latents.columns_in,
    latents.whole_lengths,
)


def sources_of(*functions: Any) -> list[str]:
    """Return the source code of each function, with an underscore before calls of all ``READERS``."""
    names = "|".join(one.__name__ for one in READERS)
    return [re.sub(rf"(?<![\w.])({names})\(", r"_\1(", inspect.getsource(one).strip()) for one in functions]


def latent_formulas(program: Program) -> list[Formula]:
    """Return the formulas needed to read latents: sides of a patch, conditions of further inputs."""
    found = latent_inputs(program)
    return [*found.units, *(one.when for one in found.others)]


def latent_context(program: Program, reading: Reading, scope: Scope) -> dict[str, Any]:
    """Return the template variables for reading latents and splitting flat lists into columns, by name."""
    found = latent_inputs(program)
    prompts = [stream.variables[0] for stream in program.streams if stream.name == "prompt" and stream.given]
    own = [*([found.width] if found.width else []), *(one.when for one in found.others)]
    sizes = Scope(program, reading.language(), reading.defaults(own))
    width = sizes.printer.text(found.width) if found.width else "None"
    axes = [*found.axes, *(axis for one in found.others for axis in one.axes)]
    switches = [f'("{one.field}", {tuple_of(one.axes)}, {scope.printer.text(one.when)})' for one in found.others]
    units = [scope.printer.inside(unit, PRODUCT) for unit in found.units]
    given = f"{tuple_of(found.axes)}, {tuple_text(switches)}, {tuple_text(units)}"
    names = ", ".join(f"{axis}_" for axis in (*axes, *(prompts or [""])))
    return {
        "latent": found, "axes": axes, "reading": sizes.statements,
        "form": f'("{found.layout}", {tuple_of(found.axes)}, {width})',
        "further": [(sizes.printer.text(one.when), input_of(one)) for one in found.others],
        "lists": [f"{names} = _columns_in(", f"    latent_seqlens, {'prompt_seqlens' if prompts else '()'}, {given}", ")"],
        "keys": tuple_of(latents.KEYS), "readers": sources_of(*READERS),
    }  # fmt: skip


def input_of(one: Switched) -> str:
    """Print a further input as arguments of :func:`symflops.evaluate.latents.latent_lengths`."""
    return f'{tuple_of(one.names)}, "{one.layout}", {tuple_of(one.axes)}'
