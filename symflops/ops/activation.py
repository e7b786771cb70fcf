"""Activations by name: no contraction, and parameters if the function has its own."""

from __future__ import annotations

from typing import Any

from sympy import Integer
from sympy.core.symbol import Str

from symflops.formula import functions as fn
from symflops.formula.domain import Setting
from symflops.formula.truth import NO, YES, Truth, any_of
from symflops.ops.elementwise import rows_match
from symflops.ops.kind import FROM, Call, Field, Form, cases, operator_kind

LEARNED = {"prelu": ("weight",), "xielu": ("alpha_p", "alpha_n")}
"""Activations with parameters, one number each: torch.nn.PReLU and transformers.activations.XIELUActivation."""


@operator_kind(
    "act",
    "an elementwise activation of the first operand, multiplied by the others; it saves its operands",
    FROM,
    Field("of", Form.EXPRESSION, "the name of the function; 'prelu' and 'xielu' have parameters of their own"),
    Field("width", Form.EXPRESSION, "width of the result; default: that of the first operand"),
)
def act(call: Call) -> None:
    """Declare the result of an activation: the first operand's rows, and the width of the field if given.

    Parameters of the function are declared without a dimension for experts, which share one module of it.
    """
    first = call.operand()
    for other in call.values["from"][1:]:
        rows_match(call.fail, first, other, "from")
    for word, names in LEARNED.items():
        for name in names:
            call.parameter(name, (Integer(1),), when=is_word(call.fields.get("of"), word), stacked=False)
    call.result(first.stream, call.number("width") if call.has("width") else first.width)


def is_word(value: Any, word: str) -> Truth:
    """The condition under which ``value``, which may be a text that a config decides, equals ``word``."""
    found = (
        case & (Truth.of(fn.Equal(item.symbol, Str(word))) if isinstance(item, Setting) else YES if item == word else NO)
        for case, item in cases(value)
    )
    return any_of(found)
