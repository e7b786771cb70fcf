"""Optional parts of a model that its class does not build but a regime may run, such as multi-token prediction layers.

The size that counts the part's modules names it (``part: prediction_heads``). It is 0 unless the regime lists the part.
"""

from __future__ import annotations

from dataclasses import replace

from symflops.ir.regime import Regime
from symflops.ir.spec import Spec
from symflops.support.findings import Diagnostic, SpecError, did_you_mean


def view_of_regime(spec: Spec, regime: Regime) -> Spec:
    """Specialise the spec to the parts that ``regime`` runs: the sizes of other parts become 0.

    Raises:
        SpecError: the regime names a part that the spec does not have.
    """
    known = dict.fromkeys(size.part for size in spec.sizes if size.part)
    for part in regime.parts:
        if part not in known:
            message = f"regime '{regime.name}' runs '{part}', a part that '{spec.name}' does not have"
            hint = did_you_mean(part, known, f"it has {', '.join(known) or 'no parts'}")
            raise SpecError([Diagnostic("unknown-part", message, regime.places.get(part), hint)])
    apart = tuple(size for size in spec.sizes if size.part and size.part not in regime.parts)
    constants = (*spec.constants, *((size.name.text, 0) for size in apart))
    return replace(spec, sizes=tuple(size for size in spec.sizes if size not in apart), constants=constants, apart=apart)
