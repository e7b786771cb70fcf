"""Normalisations: parameters, and no contraction."""

from __future__ import annotations

from math import prod

from sympy import Integer

from symflops.formula.words import said, words_of
from symflops.ops.kind import BIAS_NAME, FROM, TIE, WEIGHT, Call, Field, Form, Kind


def normalisation(name: str, bias: bool) -> Kind:
    """Make the kind of a normalisation named ``name``; ``bias`` is the default of its field ``bias``."""
    fields = (
        FROM,
        Field("affine", Form.EXPRESSION, "whether it has a weight", default="true"),
        Field("dim", Form.EXPRESSION, "elements of the weight; default: the width"),
        Field("bias", Form.EXPRESSION, "whether it has a bias", default=str(bias).lower()),
        Field("shape", Form.EXPRESSION, "the stored shape of weight and bias, with as many elements"),
        WEIGHT,
        TIE,
        BIAS_NAME,
    )
    return Kind(name, f"{name.replace('_', ' ')}: a normalisation without contractions", fields, normalise)


def normalise(call: Call) -> None:
    """Declare the weight and the bias, if any, and the result, which has the operand's rows and width."""
    x = call.operand()
    dim = call.number("dim") if call.has("dim") else call.width(x)
    affine = call.truth("affine")
    shape = call.numbers("shape") if call.has("shape") else (dim,)
    elements = prod(shape, start=Integer(1))
    if call.definitions.divide(call.width(x), elements) is None:
        text = f"a norm of {said(elements)} elements does not fit '{x.name}', which is {said(call.width(x))} wide"
        call.divides(call.width(x), elements, text)
    call.parameter("weight", shape, when=affine, field="weight")
    call.parameter("bias", shape, when=affine & call.truth("bias"), field="bias_name")
    call.caption = f"over {words_of(dim)}"
    call.result(x.stream, x.width)
