"""Writes steps: linears, convolutions, look-ups, norms, products, attention, and joins of values."""

from __future__ import annotations

from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Loop, Step
from symflops.draft.write.values import Values
from symflops.draft.write.writer import Fields, Scope, Val

AXES = {1: ("steps",), 2: ("rows", "columns"), 3: ("frames", "rows", "columns")}


class Operators(Values):
    """A writer that knows every kind of step."""

    def write_linear(self, step: Step, scope: Scope) -> None:
        """A product with a parameter."""
        flipped = step.words[0] == "flipped"
        batch, rows, inner, columns = (self.vector(step, place) for place in range(4))
        times = self.family.numbers(step, lambda one: one.times)
        outer, total = (rows, self.times(batch, columns, times)) if flipped else (columns, self.times(batch, rows, times))
        per_item, once = self.rows(total)
        if step.operands[0].kind in ("step", "carried"):
            known = self.read(step.operands[0], scope)
            if known is not None and known.once and not once:
                raw = self.fitter.formula(total)
                once = raw is not None and known.rows == total
                per_item = total if once else per_item
        value = self.operand(step.operands[0], per_item, inner, scope, once)
        weight, bias = step.parameters[0], step.parameters[1:]
        owner = weight.rpartition(".")[0]
        path = step.path
        key = self.label(step, scope)
        name = self.name(owner or weight)
        fields: Fields = {"op": "linear", "from": value.name}
        others = [self.read(ref, scope) for ref in step.operands[1:]]
        fields["width"] = self.text(outer, f"{path}: width")
        if not bias:
            fields["bias"] = "false"
        named = self.weight(weight, key, scope, "weight")
        if named is not None:
            fields["weight"] = named
        if bias and (named := self.weight(bias[0], key, scope, "bias")) is not None:
            fields["bias_name"] = named
        shape = self.family.shape(weight)
        if shape != (outer, inner):
            if shape == (inner, outer):
                fields["in_out"] = "true"
            elif len(shape) == 2 and shape[1] == inner:
                fields["rows_of"] = self.text(shape[0], weight)
            else:
                fields["shape"] = f"[{', '.join(self.text(size, weight) for size in shape)}]"
        if bias and self.family.shape(bias[0]) != (shape[0] if "rows_of" in fields else outer,):
            del fields["op"]
            fields = {"op": "linear", **fields, "bias": "false"}
            fields.pop("bias_name", None)
            others.append(self.parameter(bias[0], scope))
            bias = ()
        fields["to"] = name
        self.marked(key, fields, scope, (weight, *bias))
        made = Val(name, value.rows, outer, value.once, value.tag)
        self.put(step, made, key, fields, scope)
        self.added(step, made, [one for one in others if one is not None], scope)

    def added(self, step: Step, made: Val, others: list[Val], scope: Scope) -> None:
        """What is added to a result that is no bias of it."""
        if others:
            name = self.name(made.name)
            scope.entries.append(("_", {"op": "map", "from": [made.name, *(one.name for one in others)], "to": name}))
            self.values[step.id] = Val(name, made.rows, made.width, made.once, made.tag)

    def write_conv(self, step: Step, scope: Scope) -> None:
        """A convolution with a parameter, or of two values."""
        if not step.parameters:
            self.write_product(step, scope, [self.vector(step, place) for place in range(self.sizes(step))])
            return
        transposed, rank, biased = step.words[0], step.words[1], step.words[2]
        weight, bias = step.parameters[0], step.parameters[1:]
        first = 3 + 2 * rank
        shapes = step.words[3]
        given = [self.vector(step, first + place) for place in range(shapes[0])]
        last = first + sum(shapes)
        options = [self.vector(step, last + place) for place in range(4 * rank + 1)]
        stride, padding, dilation = options[:rank], options[rank : 2 * rank], options[2 * rank : 3 * rank]
        extra, groups = options[3 * rank : 4 * rank], options[4 * rank]
        kernel = [self.vector(step, 3 + place) for place in range(rank)]
        outer = self.times(self.vector(step, 2), groups) if transposed else self.vector(step, 1)
        items, channels = given[0], given[1]
        axes = given[2:]
        per_item, once = self.rows(self.times(items, *axes))
        more, _ = self.rows(items)
        batch_axes = {} if set(more) == {1} else {"n": self.text(more, "items of a convolution")}
        value = self.operand(step.operands[0], per_item, channels, scope, once)
        labels = AXES[rank]
        wanted = {**batch_axes, **{label: self.text(size, "axes") for label, size in zip(labels, axes, strict=True)}}
        tag = ("axes", tuple(given[:1]), tuple(axes))
        if value.tag != tag and not self.natural(value, wanted, tag):
            name = self.name(value.name)
            scope.entries.append(("_", {"op": "view", "from": value.name, "as": "select", "stream": wanted, "to": name}))
            value = Val(name, value.rows, value.width, value.once, tag)
        path = step.path
        key = self.label(step, scope)
        name = self.name(weight.rpartition(".")[0] or path)
        fields: Fields = {"op": "conv", "from": value.name, "width": self.text(outer, f"{path}: width")}
        fields["kernel"] = self.listed(kernel, path)
        for word, vectors, usual in (
            ("stride", stride, 1),
            ("padding", padding, 0),
            ("dilation", dilation, 1),
            ("output_padding", extra, 0),
        ):
            if any(set(vector) != {usual} for vector in vectors):
                fields[word] = self.listed(vectors, path) if len(set(vectors)) > 1 else self.text(vectors[0], path)
        if set(groups) != {1}:
            fields["groups"] = self.text(groups, path)
        if not biased:
            fields["bias"] = "false"
        if transposed:
            fields["transposed"] = "true"
        named = self.weight(weight, key, scope, "weight")
        if named is not None:
            fields["weight"] = named
        if bias and (named := self.weight(bias[0], key, scope, "bias")) is not None:
            fields["bias_name"] = named
        fields["to"] = name
        self.marked(key, fields, scope, step.parameters)
        out = [self.vector(step, last - 1 - place) for place in reversed(range(rank))]
        total, _ = self.rows(self.times(items, *out))
        fixed = all(len(set(vector)) == 1 for vector in (*kernel, *padding, *dilation))
        grown = fixed and all(set(vector) == {1} for vector in stride) and out == axes
        made = ("axes", tuple(given[:1]), tuple(out))
        known = not value.once and total in self.grids and self.grids[total][0] == made
        known = known and self.derivable(list(zip(axes, out, kernel, stride, padding, dilation, strict=True)))
        result = Val(name, total, outer, value.once, tag if grown else made if known else (*made, key))
        self.put(step, result, key, fields, scope)
        if not grown and not known and not value.once and self.tag(total, False) == made:
            # the operator derives another form of these axes than the one that all others have
            again = self.name(name)
            scope.entries.append(("_", {"op": "view", "from": name, "as": "select", "stream": self.stream(total), "to": again}))
            self.values[step.id] = Val(again, total, outer, False, made)

    def derivable(self, axes: list[tuple[Vector, ...]]) -> bool:
        """Whether the formulas of axes are those that a convolution derives."""
        return False

    def natural(self, value: Val, wanted: dict[str, str], tag: Any) -> bool:
        """Whether a value has these axes already: an input that is declared with them here."""
        for name, known in self.inputs.items():
            if known.name == value.name and name not in self.streams:
                self.streams[name] = wanted
                self.inputs[name] = Val(known.name, known.rows, known.width, known.once, tag)
                return True
        return bool(value.tag and value.tag[0] == "axes" and value.tag[1:3] == tag[1:3])

    def listed(self, vectors: list[Vector], place: str) -> str:
        """Vectors as a list."""
        return f"[{', '.join(self.text(vector, place) for vector in vectors)}]"

    def sizes(self, step: Step) -> int:
        """How many index sizes a contraction has."""
        return 4 if step.kind != "conv" else len(step.numbers) - sum(step.words[1])

    def write_matmul(self, step: Step, scope: Scope) -> None:
        """A product of two values."""
        self.write_product(step, scope, [self.vector(step, place) for place in range(4)])

    def write_solve(self, step: Step, scope: Scope) -> None:
        """A triangular system: of one matrix per item of its batch."""
        batch, order, _, columns = (self.vector(step, place) for place in range(4))
        total, once = self.rows(self.times(batch, order))
        matrix = self.operand(step.operands[0], total, order, scope, once)
        right = self.operand(step.operands[1], total, columns, scope, once)
        name = self.name("solved")
        fields: Fields = {
            "op": "triangular_solve",
            "from": matrix.name,
            "right": right.name,
            "order": self.text(order, step.path),
            "to": name,
        }
        self.put(step, Val(name, total, columns, once, right.tag), self.label(step, scope), fields, scope)

    def write_product(self, step: Step, scope: Scope, sizes: list[Vector]) -> None:
        """Any contraction by its index sizes."""
        times = self.family.numbers(step, lambda one: one.times)
        batch, once = self.rows(self.times(sizes[0], times))
        if once and step.kind == "matmul" and set(sizes[0]) == {1}:  # items may be the rows of one product
            rows, whole_batch = self.rows(sizes[1])
            if not whole_batch:
                batch, once, sizes = self.ones(), False, [self.ones(), rows, *sizes[2:]]
        whole = [size for size in (batch, *sizes[1:]) if set(size) != {1}] or [self.ones()]
        values = []
        for ref in step.operands[:2]:
            value = self.read(ref, scope) if ref.kind not in ("input", "constant") else None
            if value is None:
                value = self.operand(ref, self.times(batch, sizes[1]), sizes[2], scope, once)
            values.append(value)
        if not once and all(value.once for value in values):
            values[0] = self.fitted(values[0], self.times(batch, sizes[1]), sizes[2], scope, False)
        name = self.name(step.path or "product")
        rows, width = self.times(batch, *sizes[1:-2]), sizes[-1]
        if step.kind == "conv":
            rows, width = self.times(batch, *sizes[len(sizes) // 2 + 1 :]), sizes[1]
        rows, width = self.shaped(rows, width)
        fields: Fields = {"op": "matmul", "from": [value.name for value in values], "dims": self.listed(whole, step.path)}
        fields["stream"] = self.whole(rows) if once else self.stream(rows)
        fields["width"] = self.text(width, step.path)
        fields["to"] = name
        made = Val(name, rows, width, once, self.tag(rows, once))
        self.put(step, made, self.label(step, scope), fields, scope)
        others = [self.read(ref, scope) for ref in step.operands[2:]]
        self.added(step, made, [one for one in others if one is not None], scope)


__all__ = ["Loop", "Operators"]
