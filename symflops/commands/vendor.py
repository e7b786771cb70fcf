"""Vendored estimators: the program that a project's files are printed from, its examples, and the files on disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from symflops import __version__, api
from symflops.adapters.verl import only_patches_count
from symflops.commands.vendored_batches import examples
from symflops.diagnostics.errors import SymflopsError, did_you_mean
from symflops.emit.code.batches import stream_rows
from symflops.emit.code.tables import needed
from symflops.emit.vendor.files import Repeated, Vendored, files_of, formulas_of
from symflops.emit.vendor.sizes import Reading
from symflops.emit.vendor.targets import TARGETS, Target
from symflops.model.evaluate import ConfigError
from symflops.model.formula import Formula
from symflops.model.index_sets import ONCE
from symflops.model.program import Field, Program
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.runtime.sizes import sizes_of
from symflops.runtime.stored import stored_of
from symflops.specialise.assumed import put
from symflops.specialise.specialise import specialise
from symflops.system.files import holds, write

HANDS = {
    "lists": "{} hands over the lengths of texts and the patches of images",
    "latents": "{} hands over the lengths of latents and prompts",
    "one": "{} hands over one length of all sequences",
    "sums": "{} hands over sums of the lengths of two streams",
}
WORD = re.compile(r"(len:)?[A-Za-z_]\w*(\[0\])?(\.[A-Za-z_]\w*(\[0\])?)*\Z")


@dataclass(frozen=True)
class Order:
    """What is asked for: regime, convention, a config and where the project's config has which field."""

    regime: str = "full"
    convention: str = "symflops"
    config: Mapping[str, Any] | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    command: str = "symflops vendor"


def vendored(spec: str, name: str, order: Order) -> dict[str, str]:
    """The files of a spec for the project ``name``, by path in its tree.

    Raises:
        SymflopsError: the project does not hand over what the model's work depends on, or its config lacks a field.
    """
    return files_of(plan(spec, TARGETS[name], order))


def plan(spec: str, target: Target, order: Order) -> Vendored:
    """What the files are printed from.

    Raises:
        SymflopsError: as :func:`vendored`.
    """
    whole = program_of(spec, order)
    (case,) = whole.cases
    check_words(order.words, whole, target)
    check_registered(whole, target)
    streams = handed(whole, target)
    config = {**(order.config or with_fixed(whole))}
    try:
        estimator = InterpretedEstimator(whole, config, regime=case.regime, convention=case.convention)
    except ConfigError as error:
        raise SymflopsError(f"{error}{'' if order.config else ': give --config'}") from None
    check_images(estimator, streams)
    reading, sizes = Reading(whole, target, order.words), sizes_of(stored_of(whole), config)
    missing = [one for one in whole.fields if target.reads == "words" and not reading.word(one)]
    read = set(needed(formulas_of(whole), whole))
    refuse([one for one in missing if one.required and one.letter in read], target)
    known = {one.letter: sizes[one.letter] for one in missing}
    known |= {axis: stream.absent for stream in whole.streams for axis in stream.variables if stream.name not in streams}
    program = of_streams(specialise(whole, known, list(known)) if known else whole, streams)
    read |= {letter for letter, _ in whole.fixed}
    assumed = {one.keys[0]: plain(sizes[one.letter]) for one in missing if one.letter in read}
    return Vendored(
        program=program, target=target, name=identifier(whole.name), command=order.command, version=__version__,
        examples=list(examples(estimator, program, target, streams)), config=config_for(program, reading, sizes),
        words=order.words, values={one.letter: sizes[one.letter] for one in missing}, assumed=assumed, streams=streams,
    )  # fmt: skip


def program_of(spec: str, order: Order) -> Program:
    """The program of the regime, the convention and the structure that are asked for.

    Raises:
        SymflopsError: the regime runs the model several times a step.
    """
    model, regime = api.load(spec), api.regime_of(order.regime)
    if regime.phases:
        others = ", ".join(str(phase.regime) for phase in regime.phases)
        raise SymflopsError(f"a step of '{regime.name}' also runs the model under {others}: write an estimator for each")
    if order.config is None:
        return api.program_in(model.structure("", [regime], [order.convention]))
    return model.program([regime], [order.convention], order.config)


def check_words(words: Mapping[str, str], program: Program, target: Target) -> None:
    """Refuse words for fields that the spec does not read, and texts that are no path.

    Raises:
        SymflopsError: there are such ones.
    """
    keys = [key for one in program.fields for key in one.keys]
    if words and target.reads != "words":
        raise SymflopsError(f"{target.name} has the fields of a config under their own names: leave out --read")
    for key, path in words.items():
        if key not in keys:
            known = did_you_mean(key, keys, f"it reads {', '.join(keys[:6])}")
            raise SymflopsError(f"the spec reads no '{key}': {known}")
        if not WORD.match(path):
            raise SymflopsError(f"'{path}' is no path such as layers[0].attention.n_heads or len:layers")


def handed(program: Program, target: Target) -> dict[str, tuple[str, ...]]:
    """The streams that the project hands over, with their axes.

    Raises:
        SymflopsError: the model's work depends on another one, or on another axis.
    """
    rows = stream_rows(program)
    plainly = {"lists": 1, "one": 1, "sums": 3}.get(target.feeds, 3)
    names = [name for name, _, axes, optional in rows if axes and (not optional or target.feeds == "lists")]
    first = "latent" if target.feeds == "latents" and "latent" in names else next(iter(names), "")
    second = {"lists": names[1:2], "latents": [name for name in names if name == "prompt"], "sums": names[1:2]}
    taken = dict.fromkeys(name for name in (first, *second.get(target.feeds, ())) if name)
    found = {name: axes for wanted in taken for name, _, axes, _ in rows if name == wanted}
    for name, items, axes, optional in rows:
        many = name == first and len(axes) > plainly
        beside = name in found and name != first and (len(axes) > 1 or items != rows[0][1]) != (target.feeds == "lists")
        if many or beside or (name not in found and not optional):
            hands = HANDS[target.feeds].format(target.name)
            raise SymflopsError(f"{hands}, and the work of '{program.name}' depends on its '{name}'")
    return found


def of_streams(program: Program, streams: Mapping[str, tuple[str, ...]]) -> Program:
    """The program of batches that have items of these streams alone."""
    items = {ONCE, *(stream.items for stream in program.streams if stream.name in streams)}
    kept = {place for place, moment in enumerate(program.moments) if moment.items in items}

    def counted(form: tuple[tuple[int, Formula], ...]) -> tuple[tuple[int, Formula], ...]:
        return tuple((place, formula) for place, formula in form if place in kept)

    cases = (replace(case, forward=counted(case.forward), backward=counted(case.backward)) for case in program.cases)
    return replace(program, cases=tuple(cases))


def check_registered(program: Program, target: Target) -> None:
    """Refuse a model that the project has no name for.

    Raises:
        SymflopsError: it is.
    """
    if target.feeds == "latents" and not program.pipelines:
        raise SymflopsError(f"{target.name} finds an estimator by a pipeline, and '{program.name}' is in none")
    if target.feeds == "lists" and not program.model_types:
        raise SymflopsError(f"{target.name} finds an estimator by a model type, and '{program.name}' has none")


def check_images(estimator: InterpretedEstimator, streams: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse images whose shape decides their work, where a project tells the patches of each.

    Raises:
        SymflopsError: there are such ones.
    """
    others = [axes for name, axes in list(streams.items())[1:] if len(axes) > 1]
    if others and (estimator.whole or not only_patches_count(estimator, len(others[0]))):
        told = "and the project tells the patches of each alone"
        raise SymflopsError(f"the work of '{estimator.name}' depends on the shape of images, {told}")


def refuse(fields: list[Field], target: Target) -> None:
    """Refuse sizes that the project's config is not known to have.

    Raises:
        SymflopsError: there are such ones.
    """
    if fields:
        key = fields[0].keys[0]
        raise SymflopsError(f"where does a config of {target.name} have '{key}'? Say --read {key}=PATH")


def identifier(name: str) -> str:
    """The name of a spec as a part of names in code."""
    return re.sub(r"\W", "_", name)


def with_fixed(program: Program) -> dict[str, Any]:
    """A config of the structure of a program: what decides it, and else the defaults."""
    config: dict[str, Any] = {}
    fields = {one.letter: one for one in program.fields}
    for letter, value in program.fixed:
        put(config, fields[letter].keys, plain(value))
    return config


def config_for(program: Program, reading: Reading, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """A config as the project has it, with the fields that the estimator reads."""
    letters = {*needed(reading.defaults(formulas_of(program)), program), *(letter for letter, _ in program.fixed)}
    found: dict[str, Any] = {}
    for one in program.fields:
        if one.letter in letters and reading.has(one):
            path = reading.word(one) if reading.target.reads == "words" else one.keys[0]
            value = plain(sizes[one.letter])
            if path.startswith("len:"):
                found.setdefault(path[4:], Repeated()).count = value
                continue
            *outer, last = path.split(".")
            place: Any = found
            for word in outer:
                place = place.setdefault(word.removesuffix("[0]"), Repeated() if word.endswith("[0]") else {})
            place[last] = value
    return found


def plain(value: Any) -> Any:
    """A size as a config has it."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, Fraction) else value


def save(texts: Mapping[str, str], out: Path) -> int:
    """Write files below ``out``, and return how many are new or changed.

    Raises:
        SymflopsError: a link leads out of the folder.
    """
    for name in texts:
        if not (out / name).parent.resolve().is_relative_to(out.resolve()):
            raise SymflopsError(f"{(out / name).parent} leads out of {out}: remove that link")
    return sum(write(out / name, text) for name, text in texts.items())


def drifted(texts: Mapping[str, str], out: Path) -> list[str]:
    """The files below ``out`` that are not there, or differ."""
    found = []
    for name, text in texts.items():
        path = out / name
        if not path.is_file():
            found.append(f"{path}: missing")
        elif not holds(path, text.encode()):
            found.append(f"{path}: differs from what is derived")
    return found
