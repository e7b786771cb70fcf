"""The line or two of PyTorch for each operator kind; each function writes the step that a :class:`Step` describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sympy import Expr, Integer, Mul

from symflops.emit.skeleton.expressions import GapError, code, items_name
from symflops.ir.nodes import Operator, Parameter, Value

NORMS = {"rms_norm": "RMSNorm", "layer_norm": "LayerNorm", "group_norm": "GroupNorm", "batch_norm": "BatchNorm1d"}
ACTIVATIONS = {"gelu", "relu", "silu", "tanh", "sigmoid", "mish", "softplus", "elu", "selu", "leaky_relu", "hardswish"}


class Step:
    """One operator while it is written: its operands, results and parameters as code."""

    def __init__(self, writer: Any, operator: Operator) -> None:
        self.writer, self.operator = writer, operator
        self.operands = [writer.values[number] for number in operator.operands]
        self.names = [writer.names[number] for number in operator.operands]
        self.parameters = [one for one in operator.parameters if writer.known.number(one.exists.expr)]

    @property
    def first(self) -> str:
        """The name of the first operand."""
        return str(self.names[0])

    @property
    def results(self) -> list[Value]:
        """The values that the operator makes."""
        return [self.writer.values[number] for number in self.operator.results]

    def size(self, value: Value) -> str:
        """``rows, width, items`` of ``value``, as arguments of a helper."""
        return f"{code(value.stream.rows)}, {code(width_of(value))}, {items_name(value.stream.items)}"

    def assign(self, text: str) -> None:
        """Bind the only result to ``text``."""
        result = self.results[0]
        self.writer.line(f"{self.writer.bind(result)} = {text}")

    def like_first(self, position: int) -> str:
        """The operand at ``position`` with as many rows and elements as the first one, or with one row or element."""
        first, other = self.operands[0], self.operands[position]
        fits = all(a == b or b == 1 for a, b in ((first.stream.rows, other.stream.rows), (width_of(first), width_of(other))))
        return (
            self.names[position]
            if fits and not other.stream.table
            else f"fit({self.names[position]}, {self.size(first).rpartition(',')[0]})"
        )

    def value(self, field: str) -> Expr:
        """The number in a field of the entry."""
        found = self.operator.fields.get(field)
        found = getattr(found, "symbol", getattr(found, "expr", found))
        if not isinstance(found, Expr):
            raise GapError(f"'{field}' is no number")
        return found

    def flag(self, field: str) -> bool:
        """Whether a field of the entry holds."""
        return bool(self.operator.fields.get(field) is not None and self.writer.known.number(self.value(field)))

    def numbers(self, field: str, count: int = 1) -> list[Expr]:
        """The numbers in a field, ``count`` of them if it has one for all."""
        found = self.operator.fields.get(field)
        items = list(found) if isinstance(found, tuple) else [self.value(field)] * count
        return [getattr(item, "symbol", item) for item in items]

    def held(self, name: str) -> Parameter | None:
        """The parameter ``name`` of the operator's own module; None if it is elsewhere, stacked, or not there."""
        return next((one for one in self.parameters if one.path == self.operator.path.join(name)), None)

    def put(self, module: str, text: str = "") -> str:
        """Register a module at the operator's path, and return the code that reads it."""
        parameter = self.parameters[0] if self.parameters else None
        self.writer.put(self.operator.path, module, parameter.lists if parameter else ())
        return str(self.writer.read(self.operator.path))

    def tensor(self, parameter: Parameter) -> str:
        """Register a parameter, and return the code that reads it."""
        trains = "" if parameter.trainable else ", trains=False"
        self.writer.put(parameter.path, f"weight({', '.join(map(code, parameter.shape))}{trains})", parameter.lists)
        return str(self.writer.read(parameter.path))

    def run(self, call: Callable[[str, str], str], experts: bool) -> str:
        """The code of ``call(rows, expert)``, for the rows of each expert if ``experts``."""
        if not experts:
            return call(self.first, "")
        group = self.writer.experts
        if group is None:
            raise GapError("a list of modules without a router")
        index = group.index
        return f"routed(lambda x, {index}: {call('x', index)}, {self.first}, {group.chosen}, {group.count})"


def width_of(value: Value) -> Expr:
    """The width of a value; 1 for indices."""
    return Integer(1) if value.width is None else value.width


def linear(step: Step) -> None:
    """A linear layer: a module of its own, or a product with a weight that is stored in another form."""
    fields, (weight, *biases) = step.operator.fields, step.parameters
    plain = not any(fields.get(name) is not None for name in ("shape", "rows_of")) and not step.flag("in_out")
    own = plain and step.held("weight") is weight and all(step.held("bias") is one for one in biases)
    inner, outer = width_of(step.operands[0]), step.value("width")
    if own and len(weight.shape) == 2:
        module = step.put(f"nn.Linear({code(inner)}, {code(outer)}{'' if biases else ', bias=False'})")
        text = step.run(lambda x, e: f"{module}({x})", bool(weight.lists))
    else:
        stacked = len(weight.shape) == 3 and plain
        table, *bias = (step.tensor(one) for one in step.parameters)
        if not plain:
            rows = step.value("rows_of") if fields.get("rows_of") is not None else outer
            flipped = step.flag("in_out")
            table = (
                f"{table}.reshape({code(inner)}, {code(rows)}).mT"
                if flipped
                else f"{table}.reshape({code(rows)}, {code(inner)})"
            )
            table, bias = (
                (f"{table}[:{code(outer)}]", [f"{one}[:{code(outer)}]" for one in bias]) if rows != outer else (table, bias)
            )
        turned = ".mT" if stacked and step.flag("in_out") else ""

        def call(x: str, expert: str) -> str:
            own, *added = (f"{one}[{expert}]" if stacked else one for one in (table, *bias))
            return f"functional.linear({', '.join([x, own + turned, *added])})"

        text = step.run(call, stacked or bool(weight.lists))
    several(step, text, [width_of(value) for value in step.results])


def several(step: Step, text: str, sizes: list[Expr], along: int = -1) -> None:
    """Bind the results to the pieces of ``text`` of these sizes; a single one is ``text``."""
    names = [step.writer.bind(value) for value in step.results]
    cut = f".split([{', '.join(map(code, sizes))}], {along})" if len(names) > 1 else ""
    step.writer.line(f"{', '.join(names)} = {text}{cut}")


def norm(step: Step) -> None:
    """A normalisation over the width, or over each group of ``dim`` elements."""
    operator, x = step.operator, step.operands[0]
    kind, width = operator.kind, width_of(x)
    sizes = [Mul(*one.shape) for one in step.parameters]
    dim = sizes[0] if sizes else step.value("dim") if operator.fields.get("dim") is not None else width
    affine, bias = len(step.parameters) > 0, len(step.parameters) > 1
    channels = kind in ("group_norm", "batch_norm")
    own = all(len(one.shape) == 1 and one in (step.held("weight"), step.held("bias")) for one in step.parameters)
    own = own and (affine or channels)  # else no module is needed, and its path may be that of other modules
    if not own or step.writer.experts or (channels and dim != width):
        name = "rms_norm" if kind == "rms_norm" else "layer_norm"
        tables = [step.tensor(one) for one in step.parameters]
        scale = "".join(f" {sign} {table}.flatten()" for sign, table in zip("*+", tables, strict=False))
        step.assign(f"(functional.{name}(groups_of({step.first}, {code(dim)}), ({code(dim)},)){scale}).flatten(2)")
        return
    options = {
        "rms_norm": f"{code(dim)}{'' if affine else ', elementwise_affine=False'}",
        "layer_norm": f"{code(dim)}, elementwise_affine={affine}, bias={bias}",
        "group_norm": f"1, {code(dim)}{'' if affine else ', affine=False'}",
        "batch_norm": f"{code(dim)}{'' if affine else ', affine=False'}",
    }[kind]
    module = step.put(f"nn.{NORMS[kind]}({options})")
    if channels:
        step.assign(f"{module}({step.first}.mT).mT")
    else:
        step.assign(f"{module}({step.first})" if dim == width else f"{module}(groups_of({step.first}, {code(dim)})).flatten(2)")


def embedding(step: Step) -> None:
    """A table that indices look up."""
    weight = step.parameters[0]
    if step.held("weight") is weight and len(step.parameters) == 1 and not weight.lists:
        module = step.put(f"nn.Embedding({code(weight.shape[0])}, {code(weight.shape[1])})")
        return step.assign(f"{module}({step.first}[..., 0])")
    return step.assign(f"functional.embedding({step.first}[..., 0], {step.tensor(weight)})")


def parameter(step: Step) -> None:
    """A parameter as a value that exists once."""
    value = step.results[0]
    table = step.tensor(step.parameters[0])
    if value.stream.table:
        return step.assign(f"{table}.reshape(1, -1, {code(width_of(value))})")
    return step.assign(f"fit({table}.reshape(1, 1, -1), {step.size(value)})")


def attention(step: Step) -> None:
    """Softmax attention, over all pairs or over those alone that the mask leaves."""
    named, fields = step.operator.named, step.operator.fields
    query, key, value = (step.writer.joined(named[field]) for field in ("query", "key", "value"))
    heads, groups = (code(step.value("heads" if fields.get(name) is None else name)) for name in ("heads", "kv_heads"))
    scores = [one for one in step.operator.contractions if one.name.startswith("scores")]
    pairs = scores[0].extent.pairs
    queries = [step.writer.values[number] for number in named["query"]]
    keys = sum((step.writer.values[number].stream.rows for number in named["key"]), Integer(0))
    rows = sum((one.stream.rows for one in queries), Integer(0))
    fold = pairs.fold if pairs is not None and len(scores) == 1 else Integer(1)
    told = step.writer.known.resolved(scores[0].extent.executed - (rows / fold) * keys).expand() != 0 or len(scores) > 1
    mask = seen(step, pairs.queries, pairs.keys) if pairs is not None else ""
    mask = f", mask={mask}" if mask else ""
    if told:
        total = " + ".join(
            f"{items_name(one.items)} * ({code(one.extent.executed)})" for one in scores if one.extent.executed != 0
        )
        if not mask:
            step.writer.note("which pairs the queries see is not written: as many as the spec counts")
        text = f"sparse_attention({query}, {key}, {value}, {heads}, {groups}, {total or 0}{mask if fold == 1 else ''})"
    else:
        bias = f", bias={step.writer.joined(named['bias'])}" if named.get("bias") else ""
        folded = f", fold={code(fold)}" if fold != 1 else ""
        text = f"attention({query}, {key}, {value}, {heads}, {groups}{mask}{bias}{folded})"
    several(step, text, [one.stream.rows for one in queries], 1)


def seen(step: Step, queries: Expr, keys: Expr) -> str:
    """The code of the mask; empty if all pairs are seen, or if the spec does not say which ones."""
    fields, known = step.operator.fields, step.writer.known
    base = fields.get("mask")
    if any(fields.get(name) for name in ("sees", "blocks", "window", "shift")) or base == "block":
        return ""
    pairs = next(one for one in step.operator.contractions if one.name.startswith("scores")).extent.pairs
    (mask,) = [mask for mask, case in (pairs.masks if pairs else ()) if known.number(case.expr)] or (None,)
    if mask is None:
        return ""
    bounds = [("sliding", mask.sliding), ("local", mask.local), ("chunked", mask.chunked), ("prefix", mask.prefix)]
    found = [f"{name}={code(bound)}" for name, bound in bounds if bound is not None]
    found = ["causal=True", *found] if base in ("causal", "prefix") else found
    return f"sees({code(queries)}, {code(keys)}, {', '.join(found)})" if found else ""


def conv(step: Step) -> None:
    """A convolution over the last axes of the rows."""
    x, width, kernel = step.operands[0], step.value("width"), step.numbers("kernel")
    own = all(one in (step.held("weight"), step.held("bias")) for one in step.parameters)
    if step.flag("transposed") or step.flag("fixed") or not own or step.writer.experts or step.parameters[0].lists:
        raise GapError("a convolution that is transposed, constant, or of a weight elsewhere")
    options = [code(width_of(x)), code(width), sides(kernel)]
    for name, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("groups", 1)):
        given = step.operator.fields.get(name)
        if isinstance(given, str):
            options.append(f"{name}={given!r}")
        elif given is not None and (found := step.numbers(name, len(kernel) if name != "groups" else 1)) != [default] * len(
            kernel
        ):
            options.append(f"{name}={code(found[0]) if name == 'groups' else sides(found)}")
    options += [] if len(step.parameters) > 1 else ["bias=False"]
    module = step.put(f"nn.Conv{len(kernel)}d({', '.join(options)})")
    lengths = [length for _, length in x.stream.parts[0].axes[-len(kernel) :]]
    step.assign(f"convolved({step.first}, {module}, {sides(lengths)})")


def sides(numbers: list[Expr]) -> str:
    """Numbers as the code of a tuple."""
    return f"({', '.join(map(code, numbers))}{',' if len(numbers) == 1 else ''})"


def elementwise(step: Step) -> None:
    """A sum or a product of the operands; of one operand alone an activation."""
    result = step.results[0]
    sign = " * " if step.operator.kind in ("mul", "act") else " + "
    others = [step.like_first(position) for position in range(1, len(step.names))]
    first = step.first
    if step.operator.kind == "act":
        word = str(step.operator.fields.get("of") or "silu")
        tables = [step.tensor(one) for one in step.parameters]
        first = (
            f"functional.prelu({first}, {tables[0]})"
            if tables
            else f"functional.{word if word in ACTIVATIONS else 'silu'}({first})"
        )
    elif step.operator.kind == "mul" and not others:
        first = f"functional.silu({first})"
    text = sign.join([first, *others])
    wide = width_of(result) == width_of(step.operands[0])
    step.assign(text if wide else f"fit({text}, {step.size(result)})")


def stand_in(step: Step) -> None:
    """A function that the spec does not say: something that depends on all operands."""
    step.writer.note("the spec does not say which function this is")
    step.assign(f"mixed({step.size(step.results[0])}, {', '.join(step.names)})")


def concat(step: Step) -> None:
    """Values one after another."""
    if step.operator.fields["along"] == "tokens":
        items = items_name(step.results[0].stream.items)
        pieces = [
            f"{name}.expand({items}, -1, -1)" if value.stream.items == "once" else name
            for name, value in zip(step.names, step.operands, strict=True)
        ]
        return step.assign(f"torch.cat([{', '.join(pieces)}], 1)")
    first = step.operands[0]
    size = f"{code(first.stream.rows)}, {{}}, {items_name(first.stream.items)}"
    pieces = [
        name if value.stream == first.stream else f"fit({name}, {size.format(code(width_of(value)))})"
        for name, value in zip(step.names, step.operands, strict=True)
    ]
    return step.assign(f"torch.cat([{', '.join(pieces)}], -1)")


def split(step: Step) -> None:
    """One value cut into several."""
    if step.operator.fields["along"] == "tokens":
        return several(step, step.first, [value.stream.rows for value in step.results], 1)
    return several(step, step.first, [width_of(value) for value in step.results])


def rows(step: Step) -> None:
    """The rows or the width change without work."""
    x, result = step.operands[0], step.results[0]
    same = x.stream.items == result.stream.items
    size = f"{code(result.stream.rows)}, {code(width_of(result))}"
    if step.operator.kind == "reshape" and same:
        return step.assign(f"{step.first}.reshape(-1, {size})")
    if step.operator.kind == "pad" and same and x.width == result.width:
        return step.assign(f"functional.pad({step.first}, (0, 0, 0, {code(result.stream.rows - x.stream.rows)}))")
    return step.assign(f"fit({step.first}, {step.size(result)})")


def zeros(step: Step) -> None:
    """A constant."""
    value = step.results[0]
    step.assign(f"torch.zeros({items_name(value.stream.items)}, {code(value.stream.rows)}, {code(width_of(value))})")


def identity(step: Step) -> None:
    """The same value; one that the class makes need a gradient."""
    forced = step.writer.known.number(step.operator.forces.expr)
    step.assign(f"{step.first}.requires_grad_()" if forced else step.first)


def detach(step: Step) -> None:
    """The same value without a gradient."""
    step.assign(f"{step.first}.detach()")


def matmul(step: Step) -> None:
    """A product of two values; as products of elements, which PyTorch's counter does not see, if the model writes it so."""
    result, work = step.results[0], step.operator.contractions[0]
    if not work.seen:
        size = step.size(result)
        step.writer.note("a product written as elements and a sum")
        return step.assign(" * ".join(f"fit({name}, {size})" for name in step.names))
    return step.assign(
        f"product({', '.join(step.names)}, {code(work.extent.executed)}, {step.size(result).rpartition(',')[0]})"
    )


def scan(step: Step) -> None:
    """A diagonal recurrence over the rows."""
    named, names = step.operator.named, step.writer.names
    dt, write = (names[named[field][0]] for field in ("dt", "write"))
    decay = names[named["decay"][0]] if named.get("decay") else "None"
    step.assign(f"scan({step.first}, {dt}, {write}, {decay}, {code(step.value('state'))})")


def bilinear(step: Step) -> None:
    """A form in two values."""
    left, right = (code(width_of(value)) for value in step.operands)
    bias = "" if step.held("bias") else ", bias=False"
    module = step.put(f"nn.Bilinear({left}, {right}, {code(step.value('width'))}{bias})")
    step.assign(f"{module}({', '.join(step.names)})")


def flatten_batch(step: Step) -> None:
    """The rows of all items one after another."""
    step.assign(f"{step.first}.reshape(1, -1, {code(width_of(step.results[0]))})")


KINDS: Mapping[str, Callable[[Step], None]] = {
    "linear": linear, "embedding": embedding, "parameter": parameter, "attention": attention, "conv": conv,
    "rms_norm": norm, "layer_norm": norm, "group_norm": norm, "batch_norm": norm,
    "add": elementwise, "with": elementwise, "mul": elementwise, "act": elementwise, "map": stand_in, "gather": stand_in,
    "concat": concat, "split": split, "zeros": zeros, "identity": identity, "detach": detach, "matmul": matmul, "scan": scan,
    "bilinear": bilinear, "flatten_batch": flatten_batch,
    "reshape": rows, "expand": rows, "pad": rows, "pool": rows, "slice": rows, "select": rows, "pad_batch": rows,
}  # fmt: skip
