"""Writes steps without contractions: look-ups, norms, joins and concatenations of values."""

from __future__ import annotations

from math import prod

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Ref, Step
from symflops.draft.write.writer import Fields, Scope, Val, Writer, identifier


class Values(Writer):
    """A writer that knows what lies between contractions."""

    def ones(self) -> Vector:
        """The vector of ones."""
        return (1,) * self.count

    def times(self, *vectors: Vector) -> Vector:
        """The product of vectors."""
        found = tuple(prod(values) for values in zip(*vectors, strict=True)) if vectors else self.ones()
        self.fitter.factors.setdefault(found, vectors)
        return found

    def put(self, step: Step, value: Val, key: str, fields: Fields, scope: Scope) -> None:
        """Write an entry that makes the value of a step."""
        if step.quiet:
            scope.entries.append(("_", {"no_grad": "true", "graph": [(key, fields)]}))
        else:
            scope.entries.append((key, fields))
        self.values[step.id] = value

    def write(self, step: Step, scope: Scope) -> None:
        """One step."""
        getattr(self, f"write_{step.kind}")(step, scope)

    def marked(self, key: str, fields: Fields, scope: Scope, names: tuple[str, ...]) -> None:
        """Say that a parameter, or a path, is used again on purpose."""
        path = f"{scope.prefix}.{key}"
        again = path in self.covered or any(name in self.covered for name in names)
        if key != "_" and again:
            fields["shared"] = "true"
        self.covered.add(path)
        self.covered.update(names)

    def label(self, step: Step, scope: Scope) -> str:
        """The module in which a step without parameters runs."""
        key = self.path(step.path, scope)
        return "_" if key.startswith("/") else key

    def write_embedding(self, step: Step, scope: Scope) -> None:
        """A look-up in a parameter."""
        weight = step.parameters[0]
        shape = self.family.shape(weight)
        rank = step.words[0][1]
        total = self.times(*(self.vector(step, 2 + place) for place in range(rank)))
        per_item, once = self.rows(total)
        path = weight.rpartition(".")[0]
        key = self.path(path, scope)
        source = step.operands[0].name
        if source and source in self.plan.inputs and not once:
            if source not in self.inputs:
                self.inputs[source] = Val(identifier(source), per_item, (), False, self.tag(per_item, False))
                self.taken.add(identifier(source))
            known = self.inputs[source]
            start = known.name
            if known.width == () and known.rows == per_item:
                name = self.name(path)
                fields: Fields = {
                    "op": "embedding",
                    "from": start,
                    "rows": self.text(shape[0], weight),
                    "width": self.text(shape[1], weight),
                }
                named = self.weight(weight, key, scope, "weight")
                if named is not None:
                    fields["weight"] = named
                fields["to"] = name
                self.marked(key, fields, scope, step.parameters)
                self.put(step, Val(name, per_item, shape[1], False, known.tag), key, fields, scope)
                return
        table = self.parameter(weight, scope)
        self.values[step.id] = table if once else self.fitted(table, per_item, shape[1], scope, False)

    def write_norm(self, step: Step, scope: Scope) -> None:
        """A normalisation with parameters."""
        rank = step.words[1][0]
        shape = [self.vector(step, place) for place in range(rank)]
        source = step.operands[0]
        value = self.source(source, shape, scope)
        weight = step.parameters[0]
        path = weight.rpartition(".")[0]
        key = self.path(path, scope)
        name = self.name(path)
        fields: Fields = {"op": step.words[0], "from": value.name}
        size = self.family.shape(weight)
        if size != (value.width,):
            if len(size) == 1:
                fields["dim"] = self.text(size[0], weight)
            else:
                fields["shape"] = f"[{', '.join(self.text(one, weight) for one in size)}]"
        wanted = len(step.parameters) > 1
        if wanted != (step.words[0] != "rms_norm"):
            fields["bias"] = str(wanted).lower()
        for last, parameter in zip(("weight", "bias"), step.parameters, strict=False):
            named = self.weight(parameter, key, scope, last)
            if named is not None:
                fields["weight" if last == "weight" else "bias_name"] = named
        fields["to"] = name
        self.marked(key, fields, scope, step.parameters)
        self.put(step, Val(name, value.rows, value.width, value.once, value.tag), key, fields, scope)

    def source(self, ref: Ref, shape: list[Vector], scope: Scope) -> Val:
        """What a step reads as it is, or an input or a constant in the shape in which it is read."""
        found = self.read(ref, scope)
        if found is not None:
            return found
        per_item, once = self.rows(self.times(*shape[:-1]))
        width = shape[-1] if shape else self.ones()
        return self.operand(ref, per_item, width, scope, once)

    def write_join(self, step: Step, scope: Scope) -> None:
        """A value that depends on several."""
        rank = step.words[1][-1] if len(step.words) > 1 else 0
        shape = [self.vector(step, len(step.numbers) - rank + place) for place in range(rank)]
        found = [self.read(ref, scope) for ref in step.operands if ref.kind not in ("input", "constant")]
        values = [value for value in found if value is not None]
        for ref in step.operands:
            if ref.kind == "input":
                per_item, once = self.rows(self.times(*shape[:-1]))
                values.append(self.operand(ref, per_item, shape[-1] if shape else self.ones(), scope, once))
        values = list({value.name: value for value in values}.values())
        total = self.times(*shape)
        elements, once = self.rows(total)
        if all(value.once for value in values):
            elements, once = total, True

        if step.words[0] == "cat" and len(values) > 1 and self.write_concat(step, values, elements, once, shape, scope):
            return

        def same(value: Val) -> bool:
            return value.once == once and self.times(value.rows, value.width) == elements

        values.sort(key=lambda value: not same(value))
        if not same(values[0]):
            width = shape[-1] if shape else self.ones()
            wides = [
                value.width
                for value in values
                if not value.once and value.width[0] and all(e % w == 0 for e, w in zip(elements, value.width, strict=True))
            ]
            every = {wide: tuple(e // w if w else 1 for e, w in zip(elements, wide, strict=True)) for wide in (*wides, width)}
            told = (wide for wide, number in every.items() if self.fitter.formula(number) is not None)
            wide = next(told, next(iter(every)))
            rows = every[wide]
            rows, wide = self.shaped(rows, wide)
            first = next((value for value in values if value.once == once), values[0])
            values.remove(first)
            values.insert(0, self.fitted(first, rows, wide, scope, once))
        first = values[0]
        name = self.name(first.name)
        if len(values) == 1:
            self.values[step.id] = first
            return
        alike = all(value.tag == first.tag or value.once or set(value.rows) == {1} for value in values)
        level = all(value.once or value.rows == first.rows for value in values)  # sums spread over rows stay as they are
        word = (
            "add"
            if step.words[0] == "add" and alike and all(value.width == first.width for value in values) and level
            else "mul"
            if alike
            else "map"
        )
        fields: Fields = {"op": word, "from": [value.name for value in values], "to": name}
        self.put(step, Val(name, first.rows, first.width, first.once, first.tag), "_", fields, scope)

    def write_concat(
        self, step: Step, values: list[Val], elements: Vector, once: bool, shape: list[Vector], scope: Scope
    ) -> bool:
        """Values one after another, along tokens or along the width; False where it is neither."""
        if any(value.once != once or not value.width for value in values):
            return False
        first = values[0]
        rows = tuple(map(sum, zip(*(value.rows for value in values), strict=True)))
        name = self.name("joined")
        if all(value.width == first.width for value in values) and self.times(rows, first.width) == elements:
            fields: Fields = {"op": "concat", "along": "tokens", "from": [value.name for value in values], "to": name}
            self.put(step, Val(name, rows, first.width, once, ("cat", *(value.tag for value in values))), "_", fields, scope)
            return True
        width = tuple(map(sum, zip(*(value.width for value in values), strict=True)))
        if (
            all(value.rows == first.rows and value.tag == first.tag for value in values)
            and self.times(first.rows, width) == elements
        ):
            fields = {"op": "concat", "from": [value.name for value in values], "to": name}
            self.put(step, Val(name, first.rows, width, once, first.tag), "_", fields, scope)
            return True
        return False
