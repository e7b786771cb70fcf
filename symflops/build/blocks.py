"""Places block calls: inside a block only its inputs and parameters are visible."""

from __future__ import annotations

from typing import Any

from symflops.build.journal import Journaled
from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.build.services import PlaceEntries, Services
from symflops.ir.spec import BlockCall
from symflops.support.findings import Label


class Blocks:
    """Adds the nodes of block calls to the graph; ``place_entries`` does so for the body of a block."""

    def __init__(self, services: Services, place_entries: PlaceEntries) -> None:
        self.services = services
        self.place_entries = place_entries

    def place(self, entry: BlockCall, frame: Frame) -> None:
        """Add the nodes of one block call to the graph, and bind its results.

        Expressions of a block that the spec itself defines may use the sizes of the spec.
        """
        block, services = entry.block, self.services
        values = Journaled((name.text, ABSENT) for name in block.inputs)
        for name, given in zip(block.inputs, entry.arguments, strict=False):
            binding = services.binder.look_up(given[0], frame, name in block.optional)
            if binding is None:
                return services.graph.abandon(entry, frame)
            values[name.text] = binding
        names = self._parameters(entry, values, frame)
        path, shared = services.evaluator.path(entry.path, frame), services.evaluator.is_shared(entry.common, frame)
        around = frame.calling(entry.path, path, shared and services.graph.number())
        inner = around.inside(path=path, names=names, values=values)
        services.parameters.sharing += shared
        try:
            results = self._body(entry, inner)
        finally:
            services.parameters.sharing -= shared
        return services.binder.bind(entry, entry.common, results, frame)

    def _parameters(self, entry: BlockCall, values: Journaled[str, Binding], frame: Frame) -> dict[str, Any]:
        """Map the names that the block's expressions may use to values; a default may use earlier parameters."""
        evaluator = self.services.evaluator
        names: dict[str, Any] = dict(frame.sizes) if entry.block.local else {}
        for parameter, default in entry.block.parameters:
            if parameter.text in entry.parameters:
                names[parameter.text] = evaluator.argument(entry.parameters[parameter.text], frame)
            elif default is not None:
                names[parameter.text] = evaluator.value(default, frame.inside(names=names, values=values))
        return names

    def _body(self, entry: BlockCall, inner: Frame) -> list[Binding]:
        """Add the nodes of a block's body, in the frame of the call; return the bindings of the outputs."""
        block, surroundings = entry.block, self.services.surroundings
        surroundings.calls.append(Label(entry.span, f"in this call of block '{block.name}'"))
        around, surroundings.ahead = surroundings.ahead, []
        try:
            self.place_entries(block.body, inner)
        finally:
            surroundings.calls.pop()
            surroundings.ahead = around
        for output in block.outputs:
            if output.text not in inner.values:
                message = f"block '{block.name}' never makes its output '{output}'"
                self.services.report.error("unknown-value", message, output.span)
        return [inner.values.get(output.text, ABSENT) for output in block.outputs]
