"""What estimators of diffusion models print beside the sums: how they read latents, and inputs that a config switches on."""

from __future__ import annotations

import inspect
import re
from typing import Any

from symflops.emit.code.infix import PRODUCT
from symflops.emit.code.tables import Scope, Tables
from symflops.emit.rendering import tuple_of, tuple_text
from symflops.emit.vendor.sizes import Reading
from symflops.model.formula import Formula
from symflops.model.program import Program
from symflops.runtime import latents
from symflops.runtime.latent_inputs import Switched, latent_inputs

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


def printed(*functions: Any) -> list[str]:
    """The source of some of the functions, with an underscore before the names of all."""
    names = "|".join(one.__name__ for one in READERS)
    return [re.sub(rf"(?<![\w.])({names})\(", r"_\1(", inspect.getsource(one).strip()) for one in functions]


def formulas_of(program: Program) -> list[Formula]:
    """Formulas that the reader of flat lists evaluates: sides of a patch, and conditions of further inputs."""
    found = latent_inputs(program)
    return [*found.units, *(one.when for one in found.others)]


def context_of(program: Program, reading: Reading, scope: Scope) -> dict[str, Any]:
    """The names of the template: how latents are read, with statements of their own, and how flat lists become columns."""
    found = latent_inputs(program)
    prompts = [stream.variables[0] for stream in program.streams if stream.name == "prompt" and stream.given]
    own = [*([found.width] if found.width else []), *(one.when for one in found.others)]
    sizes = Scope(Tables(program, reading.language()), reading.defaults(own))
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
        "keys": tuple_of(latents.KEYS), "readers": printed(*READERS),
    }  # fmt: skip


def input_of(one: Switched) -> str:
    """A further input as :func:`symflops.runtime.latents.latent_lengths` takes it."""
    return f'{tuple_of(one.names)}, "{one.layout}", {tuple_of(one.axes)}'
