"""Imports the class that a spec describes, builds it from a config, and compares its defaults with those of the spec.

``transformers.LlamaForCausalLM`` is a class of a package, ``my_module:MyModel`` the class ``MyModel`` of ``my_module.py`` in
the folder of the spec. That file is executed, as ``python my_module.py`` would; nothing else that a spec names ever is.

Classes of transformers name the class of their config (``config_class``), whose objects read and write JSON (``to_dict``). A
user's class does so too, or its constructor has one argument that takes the config: a dataclass, or an object of attrs,
pydantic or any other class that declares fields.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import json
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import lru_cache, reduce
from pathlib import Path
from types import UnionType
from typing import Any

from symflops.api import Model
from symflops.evaluate.config import as_json
from symflops.evaluate.sizes import is_null, look_up, sizes_of
from symflops.evaluate.stored import stored_of
from symflops.formula.formula import symbols
from symflops.ir.program import Field
from symflops.ir.spec import Spec
from symflops.support.findings import SymflopsError, did_you_mean
from symflops.verify.running import needed

PACKAGES = ("transformers", "diffusers", "torch")
EXAMPLES = {
    "number": 1, "count": 1, "entries": 1, "position": 0, "rational": 1, "flag": False, "text": "", "list": [],
    "number or list": 1, "any": 1, "number, list, same or valid": 1,
}  # fmt: skip
"""Type of a size -> value to compare with if the size has no default."""
FIELDS = ("__dataclass_fields__", "__attrs_attrs__", "model_fields", "_fields")
"""Attributes that mark classes with declared fields: dataclasses, attrs, pydantic, named tuples."""
CONFIGS = ("config", "cfg", "conf", "args", "hparams")
"""Names of constructor arguments that hold a config, if nothing says its class."""


def plain_lists(value: Any) -> Any:
    """A value of a config with lists in place of tuples, as JSON has them."""
    if isinstance(value, Mapping):
        return {name: plain_lists(one) for name, one in value.items()}
    return [plain_lists(one) for one in value] if isinstance(value, (list, tuple)) else value


def class_of(reference: str, folder: Path | None = None) -> Any:
    """Import the module class that ``reference`` names, from a known package or a file in ``folder``.

    Raises:
        SymflopsError: the class does not exist, or its file fails when it is run.
    """
    package, _, path = reference.partition(".")
    name, colon, inner = reference.partition(":")
    if colon:
        found = member_of(_beside(name, folder), inner, f"{name.replace('.', '/')}.py")
    elif package in PACKAGES and path:
        found = needed(package)
        found = member_of(found, path, f"{package} {getattr(found, '__version__', '')}", "is it of another version?")
    else:
        known = f"a reference is a class of {', '.join(PACKAGES)}, or 'module:Class' with module.py beside the spec"
        raise SymflopsError(f"'{reference}' cannot be verified live: {known}")
    return checked(found, reference)


def checked(found: Any, reference: str) -> Any:
    """Return ``found``, called ``reference`` in messages, if it is a torch module class.

    Raises:
        SymflopsError: it is anything else.
    """
    if not (isinstance(found, type) and issubclass(found, needed("torch").nn.Module)):
        raise SymflopsError(f"'{reference}' is no module class")
    return found


def package_of(reference: str) -> str:
    """The package of a class name, such as ``transformers``; ``torch`` for a class in a file."""
    return "torch" if ":" in reference else reference.partition(".")[0]


def member_of(found: Any, path: str, where: str, otherwise: str = "") -> Any:
    """Look up the class at the dotted ``path`` inside the module ``found``.

    ``where`` names the module in messages; ``otherwise`` is the hint if no similar class exists.

    Raises:
        SymflopsError: it does not exist, or cannot be imported.
    """
    for word in path.split("."):
        known = found
        try:
            found = getattr(known, word)
        except AttributeError:
            hint = did_you_mean(word, (name for name in dir(known) if name[:1].isupper()), otherwise)
            raise SymflopsError(f"{where} has no class '{path}'" + (f": {hint}" if hint else "")) from None
        except ImportError as error:
            raise SymflopsError(f"'{path}' of {where} cannot be imported: {error}") from error
    return found


def _beside(name: str, folder: Path | None) -> Any:
    path = (folder or Path()).joinpath(*name.split(".")).with_suffix(".py")
    if not path.is_file():
        raise SymflopsError(f"there is no file '{path.name}' beside the spec (looked for {path})")
    return module_of_file(path.resolve())


@lru_cache(maxsize=64)
def module_of_file(path: Path) -> Any:
    """Execute a file as a module, once per process; it can import other files of its folder.

    Raises:
        SymflopsError: the file fails when it is run.
    """
    name = f"_symflops_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SymflopsError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up the annotations of their fields there
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise SymflopsError(f"{path} fails when it is run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def config_class_of(kind: Any) -> Any:
    """The config class of a module class; None if it is built from plain arguments."""
    found = getattr(kind, "config_class", None)
    return argument_of(kind)[1] if found is None else found


def argument_of(kind: Any) -> tuple[str, Any]:
    """Return (name, class) of the constructor argument that takes the config; ``("", None)`` without one.

    The class is that of the argument's annotation, or of its default. If a config has neither, it is the only class with
    declared fields in the module.
    """
    arguments = arguments_of(kind)
    needed = [name for name, one in arguments.items() if one.default is one.empty] or list(arguments)
    if len(needed) != 1:
        return "", None
    (name,) = needed
    own = declared_class(hints_of(kind.__init__).get(name)) or declared_class(type(arguments[name].default))
    if own is None and name in CONFIGS and arguments[name].annotation is inspect.Parameter.empty:
        beside = {one for one in vars(sys.modules.get(kind.__module__)).values() if declared_class(one)}
        own = beside.pop() if len(beside) == 1 else None
    return (name, own) if own is not None else ("", None)


def arguments_of(kind: Any) -> dict[str, inspect.Parameter]:
    """Map the named arguments of a class's constructor to their parameters."""
    with suppress(TypeError, ValueError):
        found = inspect.signature(kind).parameters.values()
        return {one.name: one for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    return {}


def hints_of(made: Any) -> Mapping[str, Any]:
    """Resolve the annotations of a function or class; empty if one cannot be resolved."""
    try:
        return typing.get_type_hints(made)
    except Exception:  # an annotation is any code
        return {}


def declared_class(hint: Any) -> Any:
    """The class with declared fields in an annotation, such as ``X`` in ``X | None``; None without one."""
    return next((one for one in options_of(hint) if any(hasattr(one, name) for name in FIELDS)), None)


def options_of(hint: Any) -> list[Any]:
    """List the classes in an annotation: the members of a union, or the class itself."""
    union = typing.get_origin(hint) in (typing.Union, UnionType)
    return [one for one in (typing.get_args(hint) if union else [hint]) if isinstance(one, type)]


def built(kind: Any, given: Mapping[str, Any]) -> Any:
    """Instantiate a module class from its config or its arguments, given as JSON data."""
    name, own = argument_of(kind)
    named = getattr(kind, "config_class", None)
    if named is not None:
        return kind(config_object(named, given))
    return kind(**{name: config_object(own, given)}) if own is not None else kind(**converted(kind.__init__, given))


def config_object(config_class: Any, given: Mapping[str, Any]) -> Any:
    """Instantiate a config class and its nested configs; transformers builds the nested ones itself."""
    return config_class(**given) if hasattr(config_class, "to_dict") else config_class(**converted(config_class, given))


def converted(maker: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert JSON arguments to the types that ``maker`` annotates, such as configs and enumerations."""
    hints = hints_of(maker)
    return {name: as_annotated(hints.get(name), value) for name, value in given.items()}


def as_annotated(hint: Any, value: Any) -> Any:
    """Convert one JSON value to the type in an annotation."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(value, (list, tuple)) and origin in (list, tuple) and inner:
        items = [as_annotated(inner[0], item) for item in value]
        return value if items == list(value) else tuple(items) if origin is tuple else items
    own = declared_class(hint)
    if isinstance(value, Mapping) and own is not None:
        return config_object(own, value)
    names = [one for one in options_of(hint) if issubclass(one, Enum)]
    return names[0](value) if names and not isinstance(value, Enum) and value is not None else value


def complete(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults of a user's config classes; return other configs as given.

    Fields that the constructor does not take, and values that JSON cannot hold, are left out.
    """
    own = config_class_of(kind)
    if own is not None:
        return dict(given) if hasattr(own, "to_dict") else as_given(own, given)
    hints = hints_of(kind.__init__)
    parts = {name: declared_class(hints.get(name)) for name, value in given.items() if isinstance(value, Mapping)}
    return {**given, **{name: as_given(part, given[name]) for name, part in parts.items() if part is not None}}


def as_given(config_class: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Complete ``given`` with the defaults of a config class, as JSON."""
    found = as_json(config_object(config_class, given))
    declared = dataclasses.fields(config_class) if dataclasses.is_dataclass(config_class) else ()
    taken = {one.name for one in declared if one.init} if declared else found.keys()
    return {**given, **{name: value for name, value in found.items() if name in taken and is_json(value)}}


def is_json(value: Any) -> bool:
    """Whether a JSON file can hold a value."""
    try:
        return bool(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return False


def parts_of(config_class: Any) -> Iterator[tuple[str, Any]]:
    """Yield (field, class) for the fields of a user's config class that hold nested configs."""
    for name, hint in hints_of(config_class).items():
        part = declared_class(hint)
        if part is not None and not hasattr(part, "to_dict"):
            yield name, part


def in_evaluation(spec: Spec, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``config`` with the values that fields of ``spec`` have in evaluation mode."""
    values = [(size.keys[0], size.evaluation) for size in spec.sizes if size.evaluation is not None]
    return reduce(lambda found, pair: with_value(found, *pair), values, dict(config))


def with_value(config: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return a copy of ``config`` with ``value`` at ``key``; dots in the key lead into nested configs."""
    first, _, rest = key.partition(".")
    return {**config, first: with_value(config.get(first) or {}, rest, value) if rest else value}


def referenced(reference: str) -> Any:
    """Import the class of ``package.module:Class`` or ``path/to/file.py:Class``.

    Raises:
        SymflopsError: there is no such module or class.
    """
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name:
        raise SymflopsError(f"'{reference}' names no class: write package.module:Class, or file.py:Class")
    return checked(member_of(module_at(place), name, f"'{place}'", "look at its names"), reference)


def module_at(place: str) -> Any:
    """Import a Python module by its name or its file.

    Raises:
        SymflopsError: there is none, or it cannot be imported.
    """
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise SymflopsError(f"there is no file {place}")
        return module_of_file(Path(place).resolve())
    try:
        return importlib.import_module(place)
    except ImportError as error:
        if error.name == place.partition(".")[0]:
            raise SymflopsError(f"there is no module '{place}': is it installed, and on the path?") from None
        raise SymflopsError(f"'{place}' cannot be imported: {error}") from error


def class_defaults(reference: str, folder: Path | None = None) -> Mapping[str, Any]:
    """The default config of a class: from its config class, else from its constructor's signature.

    Raises:
        SymflopsError: the package or the class does not exist.
    """
    real = class_of(reference, folder)
    config_class = config_class_of(real)
    if config_class is not None and hasattr(config_class, "to_dict"):
        return config_class().to_dict()  # type: ignore[no-any-return]
    return signature_of(config_class or real)


def written_defaults(reference: str, folder: Path | None = None) -> Mapping[str, Any]:
    """The default config as a class's signature has it, before the class replaces nulls by computed values.

    Raises:
        SymflopsError: the package or the class does not exist.
    """
    real = class_of(reference, folder)
    kind = config_class_of(real) or real
    parts = getattr(kind, "sub_configs", {})
    return {**signature_of(kind), **{name: signature_of(part) for name, part in parts.items() if hasattr(part, "to_dict")}}


def signature_of(kind: type) -> Mapping[str, Any]:
    """Map the arguments of a class's constructor that have defaults to these, as JSON data."""
    parameters = inspect.signature(kind).parameters.values()
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    made = {item.name: item.default_factory for item in fields if item.default_factory is not dataclasses.MISSING}
    given = {item.name: item.default for item in parameters if item.default is not inspect.Parameter.empty}
    return {name: as_json(made[name]() if name in made else value) for name, value in given.items()}


def other_defaults(model: Model, reference: str, folder: Path) -> dict[str, Any]:
    """Map letters of sizes to the defaults of a class, where they differ from the spec's.

    A formula of other sizes is a default of the class, too, unless the class states a value. Its value follows from the class's
    own defaults. Sizes for which the class has no value are left out.
    """
    program = replace(model.program(["forward"], ["symflops"], {}), census=None)
    needed = [field for field in program.fields if field.required and field.default is None]
    defaults, written = class_defaults(reference, folder), written_defaults(reference, folder)
    known = {field.keys[0]: look_up(defaults, field.keys) for field in needed}
    theirs = sizes_of(stored_of(program), _completed(defaults, known, needed))
    config: dict[str, Any] = _completed({}, dict.fromkeys(known), needed)
    found = {}
    for field in (field for field in program.fields if look_up(defaults, field.keys) is not None):
        value, stated = theirs[field.letter], look_up(written, field.keys) is not None
        formula = not isinstance(field.default, (bool, str, tuple, type(None))) and any(symbols(field.default))
        if (formula and stated) or value != sizes_of(stored_of(program), config)[field.letter]:
            found[field.letter], config = value, with_value(config, field.keys[0], value)
    return found


def default_differences(model: Model) -> Iterator[str]:
    """Yield a line for each size whose default differs from that of a class which the spec describes.

    If a size has no default, the class must have none either: a config must give it. A default may equal the one in the
    class's signature even if the class replaces it later, because the spec itself describes the replacement.
    """
    program = replace(model.program(["forward"], ["symflops"], {}), census=None)
    needed = [field for field in program.fields if field.required and field.default is None]
    folder = model.file.path.parent
    for reference in model.spec.references:
        defaults, written = class_defaults(reference, folder), written_defaults(reference, folder)
        known = {field.keys[0]: look_up(defaults, field.keys) for field in needed}
        ours, theirs = (sizes_of(stored_of(program), _completed(config, known, needed)) for config in ({}, defaults))
        for field in program.fields:
            own, real = ours[field.letter], theirs[field.letter]
            as_written = own == look_up(written, field.keys) if own is not None else is_null(written, field.keys)
            if (own != real and not as_written) or known.get(field.keys[0]) is not None:
                both = f"{'none' if field in needed else repr(own)} in the spec, {real!r} in {reference}"
                yield f"default of size '{field.letter}' ({field.keys[0]}): {both}"


def _completed(config: Mapping[str, Any], known: Mapping[str, Any], needed: Sequence[Field]) -> dict[str, Any]:
    """Return ``config`` with a value for each ``needed`` field: that in ``known``, or if null an example."""
    completed = dict(config)
    for field in needed:
        value = known[field.keys[0]]
        completed = with_value(completed, field.keys[0], EXAMPLES[field.kind] if value is None else value)
    return completed
