"""Live verification: builds and runs the real class of a spec, and compares it with the derivation.

The model is on the meta device, unless its case asks for the CPU because the forward pass reads values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symflops.diagnostics.findings import SymflopsError
from symflops.model.formula import symbols
from symflops.model.graph import Graph
from symflops.runtime.classes import of_class
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.runtime.parameters import instances_of, parameter_differences
from symflops.witness.cases import LiveCase
from symflops.witness.classes import class_of, package_of
from symflops.witness.config_classes import built, complete
from symflops.witness.counting import counter, plain_attention
from symflops.witness.modes import in_evaluation
from symflops.witness.module_work import rolled_up, starred
from symflops.witness.outputs import summed_tensors
from symflops.witness.tensors import arguments_of, moved, needed

if TYPE_CHECKING:
    from symflops.api import Model
    from symflops.model.program import Program
    from symflops.runtime.parameters import Shape

OPTIONS = {"transformers": {"attn_implementation": "eager"}}


@dataclass(frozen=True, slots=True)
class Figure:
    """One number (elements, or FLOPs of one step): that of the real model, and the derived one."""

    expected: int
    derived: int

    @property
    def equal(self) -> bool:
        """Whether both agree, to the last unit."""
        return self.expected == self.derived


@dataclass(frozen=True, slots=True)
class LiveReport:
    """The real model and the spec compared on one case.

    ``parameters`` counts elements. ``missing`` are real parameters that the spec does not claim, ``extra`` claimed ones that
    the model lacks, ``wrong`` those of another shape (name, real, derived). Passes are FLOPs of one step: of training, and of
    inference (``torch.no_grad``, whose backward pass is 0). ``modules`` are the paths whose forward FLOPs differ, with ``*``
    for indices. ``real`` are all parameters of the real model, ``sizes`` the sizes that a shape may consist of. ``unrun`` says
    why no passes were compared: an unfinished spec need not know the inputs of the model. ``single`` is whether a length of the
    batch is 1. ``masked`` are the modules with a mask, which is not compared: PyTorch's counter sees all pairs.
    """

    case: str
    reference: str
    versions: tuple[tuple[str, str], ...]
    parameters: Figure
    missing: tuple[tuple[str, Shape], ...]
    extra: tuple[tuple[str, Shape], ...]
    wrong: tuple[tuple[str, Shape, Shape], ...]
    forward: Figure
    backward: Figure
    inference: Figure
    inference_backward: Figure
    modules: tuple[tuple[str, Figure], ...]
    real: tuple[tuple[str, Shape], ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    unrun: str = ""
    single: bool = False
    masked: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether nothing differs."""
        if self.unrun:
            return False
        figures = (self.parameters, self.forward, self.backward, self.inference, self.inference_backward)
        return all(figure.equal for figure in figures) and not (self.missing or self.extra or self.wrong or self.modules)


@dataclass(frozen=True, slots=True)
class Counts:
    """FLOPs of one pass: the total, and per module path (containers include their children)."""

    total: int
    modules: Mapping[str, int]


def verify_live(model: Model, case: LiveCase) -> LiveReport:
    """Build the real class for one case, run both passes, and compare parameters, FLOPs and modules with the derivation.

    Raises:
        SymflopsError: a package is missing, the class does not exist, or it does not accept the case.
    """
    reference = reference_of(model, case)
    real, built = build(reference, case, model.file.path.parent)
    config = in_evaluation(model.spec, built)
    program = model.program(["full", "forward"], ["torch"], config)
    trained, inferred = (InterpretedEstimator(program, config, regime=name, convention="torch") for name in ("full", "forward"))
    expected, aliases = parameters_of(real)
    return LiveReport(
        case=case.label,
        reference=reference,
        versions=tuple((name, str(needed(name).__version__)) for name in dict.fromkeys(("torch", package_of(reference)))),
        parameters=Figure(sum(tensor.numel() for tensor in real.parameters()), trained.parameters),
        real=tuple(expected.items()),
        sizes=tuple(widths(program, trained.sizes)),
        single=any(length == 1 for items in case.batch.values() for item in items for length in lengths_of(item)),
        masked=masked_modules(model.graph(config)),
        **parameter_differences(expected, instances_of(program, trained.sizes), aliases),
        **passes(model, real, case, trained, inferred, list(aliases)),
    )


def masked_modules(graph: Graph) -> tuple[str, ...]:
    """The modules whose attention has a mask, so that some of its pairs are not useful."""
    masked = (op for op in graph.operators() if any(work.extent.useful != work.extent.executed for work in op.contractions))
    return tuple(sorted({str(op.path) for op in masked if op.kind == "attention"}))


def lengths_of(item: Any) -> Sequence[Any]:
    """The lengths of an item of a batch."""
    return item if isinstance(item, (list, tuple)) else (item,)


def reference_of(model: Model, case: LiveCase) -> str:
    """The class of a case: its own, else the first that the spec names.

    Raises:
        SymflopsError: neither names a class.
    """
    if not (case.reference or model.spec.references):
        raise SymflopsError(f"'{model.spec.name}' names no class to compare with: write 'reference: package.Class'")
    return case.reference or model.spec.references[0]


def passes(
    model: Model, real: Any, case: LiveCase, trained: InterpretedEstimator, inferred: InterpretedEstimator, aliases: list[str]
) -> dict[str, Any]:
    """The fields of a report about passes; for an unfinished spec whose model cannot run, only the reason."""
    try:
        arguments = moved(arguments_of(trained.program, case.batch, trained.sizes, case.arguments), case.device)
        outputs = outputs_of(model)
        forward, backward = run(real, arguments, case, train=True, outputs=outputs)
        inference, nothing = run(real, arguments, case, train=False, outputs=outputs)
        moments = trained.moments(**case.batch)
    except SymflopsError as error:
        if not model.partial:
            raise
        figures = dict.fromkeys(("forward", "backward", "inference", "inference_backward"), Figure(0, 0))
        return {**figures, "modules": (), "unrun": str(error)}
    work = trained.running(moments)
    return {
        "forward": Figure(forward.total, trained.forward(moments)),
        "backward": Figure(backward.total, trained.backward(moments)),
        "inference": Figure(inference.total, inferred.forward(moments)),
        "inference_backward": Figure(nothing.total, inferred.backward(moments)),
        "modules": tuple(different(forward.modules, work, [name for name, _ in real.named_modules()] + aliases)),
    }


def widths(program: Program, sizes: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The whole numbers among the sizes that a shape may consist of, without those that count iterations of a repeat."""
    counts = {name for tensor in program.tensors for _, _, high, _ in tensor.ranges for name in symbols(high)}
    for name, value in sizes.items():
        if isinstance(value, int) and not isinstance(value, bool) and name not in counts:
            yield name, value


def build(reference: str, case: LiveCase, folder: Path | None = None) -> tuple[Any, Mapping[str, Any]]:
    """The real model in evaluation mode, and its complete config, including the defaults of the class.

    Args:
        reference: The class.
        case: Its config and options.
        folder: The folder of the spec, for a class from a file beside it.

    Raises:
        SymflopsError: the class does not exist or cannot be built from the config.
    """
    kind = class_of(reference, folder)
    options = {**OPTIONS.get(package_of(reference), {}), **case.options}
    try:
        with needed("torch").device(case.device):
            model = built(kind, {**case.config, **options}).eval()
    except Exception as error:
        raise SymflopsError(f"{case.label}: {reference} cannot be built: {type(error).__name__}: {error}") from error
    config: Any = getattr(model, "config", None)
    if hasattr(config, "to_dict"):
        return model, of_class(config.to_dict(), reference)
    return model, of_class(config if isinstance(config, Mapping) else complete(kind, case.config), reference)


def parameters_of(model: Any) -> tuple[dict[str, Shape], dict[str, str]]:
    """The shape of each parameter, tied ones once; and for every name the first name of its parameter."""
    shapes = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
    first = {id(tensor): name for name, tensor in model.named_parameters()}
    return shapes, {name: first[id(tensor)] for name, tensor in model.named_parameters(remove_duplicate=False)}


def outputs_of(model: Model) -> tuple[str, ...]:
    """The names of a spec's outputs, which the loss sums."""
    return tuple(output.text for output in model.spec.outputs)


def run(
    model: Any, arguments: Mapping[str, Any], case: LiveCase, train: bool, modules: bool = True, outputs: Sequence[str] = ()
) -> tuple[Counts, Counts]:
    """FLOPs of the forward pass, and of the backward pass from the sum of ``outputs``; the latter are 0 without ``train``.

    Raises:
        SymflopsError: the model fails to run.
    """
    torch = needed("torch")
    try:
        with torch.set_grad_enabled(train), frozen(model, not train), plain_attention(), counter(modules) as forward:
            summed = [tensor for tensor in summed_tensors(model(**arguments), outputs) if tensor.requires_grad]
        with plain_attention(), counter(modules) as backward:
            if summed:
                torch.autograd.backward([tensor.sum() for tensor in summed])
    except SymflopsError:
        raise
    except Exception as error:
        raise SymflopsError(f"{case.label}: {type(model).__name__} fails to run: {type(error).__name__}: {error}") from error
    finally:
        model.zero_grad(set_to_none=True)
    return counted(forward, model), counted(backward, model)


@contextmanager
def frozen(model: Any, whole: bool) -> Iterator[None]:
    """Freeze the ``whole`` model for a pass without gradients: the counter's hooks fail on views of parameters that train."""
    trained = [tensor for tensor in model.parameters() if whole and tensor.requires_grad]
    try:
        for tensor in trained:
            tensor.requires_grad_(False)
        yield
    finally:
        for tensor in trained:
            tensor.requires_grad_(True)


def counted(mode: Any, model: Any) -> Counts:
    """The counts of a counter, by path without the class in front; a shared module has the first of its paths."""
    first = {id(module): name for name, module in model.named_modules()}
    paths = {name: first[id(module)] for name, module in model.named_modules(remove_duplicate=False)}
    found: Counter[str] = Counter()
    for path, operators in mode.get_flop_counts().items():
        if "." in path:
            inner = path.partition(".")[2]
            found[paths.get(inner, inner)] += sum(operators.values())
    return Counts(int(mode.get_total_flops()), found)


def different(
    real: Mapping[str, int], work: Mapping[tuple[str, ...], int], known: Iterable[str]
) -> Iterator[tuple[str, Figure]]:
    """The modules whose forward FLOPs differ: those that the counter reports, and derived work at unknown paths."""
    expected: Counter[str] = Counter()
    for path, flops in real.items():
        expected[starred(path)] += flops
    derived = rolled_up(work)
    unknown = {starred(modules[-1]) for modules, flops in work.items() if flops and modules} - {starred(path) for path in known}
    for path in sorted(expected.keys() | unknown):
        figure = Figure(expected[path], derived[path])
        if not figure.equal:
            yield path, figure
