"""Live verification: builds and runs the real class of a spec, and compares it with the derivation.

The model is on the meta device, unless its case asks for the CPU because the forward pass reads values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from symflops.api import Model
from symflops.evaluate.batch import items_of
from symflops.evaluate.classes import of_class
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.parameters import Shape, instances_of, parameter_differences
from symflops.formula.formula import symbols
from symflops.ir.program import Program
from symflops.support.findings import SymflopsError
from symflops.verify.cases import LiveCase
from symflops.verify.classes import built, class_of, complete, in_evaluation, package_of
from symflops.verify.pairs import Masks, compared, derived_pairs, on_cpu, other_implementation, real_pairs
from symflops.verify.running import Figure, arguments_of, both_passes, counter, different, filled, moved, needed

Estimated = tuple[Program, Mapping[str, Any]]
OPTIONS = {"transformers": {"attn_implementation": "eager"}}
LARGE = 2_000_000_000
"""Models with more elements (8 GB) are not built on the CPU to compare masks."""


@dataclass(frozen=True, slots=True)
class LiveReport:
    """Comparison of the real model and the spec on one case.

    Attributes:
        case: File and line of the case.
        reference: The name of the real class.
        versions: (package, version) of PyTorch and of the class's library.
        parameters: Number of parameter elements.
        missing: (name, shape) of real parameters that the spec lacks.
        extra: (name, shape) of parameters of the spec that the real model lacks.
        wrong: (name, real shape, derived shape) of parameters whose shapes differ.
        forward: FLOPs of the forward pass in training.
        backward: FLOPs of the backward pass in training.
        inference: FLOPs of a forward pass under ``torch.no_grad``.
        inference_backward: FLOPs after a forward pass under ``torch.no_grad``: 0.
        modules: (path with ``*`` for indices, forward FLOPs) of modules whose forward FLOPs differ.
        real: (name, shape) of all parameters of the real model.
        sizes: (letter, value) of the sizes that a shape may consist of.
        unrun: Why no FLOPs were compared; else empty.
        single: Whether some length of the batch is 1.
        masks: Comparison of attention masks, which do not change PyTorch's count of FLOPs; None without attention.
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
    masks: Masks | None = None

    def as_json(self) -> dict[str, Any]:
        """Convert the report to JSON data; each figure is ``{"real": ..., "derived": ...}``."""
        names = ("parameters", "forward", "backward", "inference", "inference_backward")
        figures = {name: {"real": getattr(self, name).expected, "derived": getattr(self, name).derived} for name in names}
        masks = self.masks.as_json() if self.masks else None
        return {"case": self.case, "reference": self.reference, "exact": self.exact, **figures, "masks": masks}

    @property
    def exact(self) -> bool:
        """Whether FLOPs were compared, and no parameter, figure, module or mask differs."""
        if self.unrun or (self.masks and self.masks.modules):
            return False
        figures = (self.parameters, self.forward, self.backward, self.inference, self.inference_backward)
        return all(figure.equal for figure in figures) and not (self.missing or self.extra or self.wrong or self.modules)


@dataclass(frozen=True, slots=True)
class Counts:
    """FLOPs of one pass: in total, and by module path; a module includes the modules inside it."""

    total: int
    modules: Mapping[str, int]


def verify_live(model: Model, case: LiveCase, lenient: bool = False) -> LiveReport:
    """Build and run the real class of one case; compare parameters, FLOPs and modules with the spec.

    If the class does not run, and ``lenient`` is true, parameters alone are compared.

    Raises:
        SymflopsError: a package is missing, the class does not exist, or it does not accept the case.
    """
    reference = reference_of(model, case)
    real, built = build(reference, case, model.file.path.parent)
    config = in_evaluation(model.spec, built)
    program = model.program(["full", "forward"], ["torch"], config)
    trained, inferred = (InterpretedEstimator(program, config, regime=name, convention="torch") for name in ("full", "forward"))
    expected, aliases = parameters_of(real)
    elements = sum(tensor.numel() for tensor in real.parameters())
    large = Masks(unseen=f"the model has {elements:,} parameters, too many for the CPU: a smaller case shows them")
    return LiveReport(
        case=case.label,
        reference=reference,
        versions=tuple((name, str(needed(name).__version__)) for name in dict.fromkeys(("torch", package_of(reference)))),
        parameters=Figure(elements, trained.parameters),
        real=tuple(expected.items()),
        sizes=tuple(widths(program, trained.sizes)),
        single=any(
            1 in item if isinstance(item, (list, tuple)) else item == 1 for items in case.batch.values() for item in items
        ),
        masks=None if model.partial else large if elements > LARGE else masks_of(model, case),
        **parameter_differences(expected, instances_of(program, trained.sizes), aliases),
        **passes(model, real, case, trained, inferred, list(aliases), lenient or model.partial),
    )


def masks_of(model: Model, case: LiveCase, derived: Callable[[Mapping[str, Any]], Estimated] | None = None) -> Masks | None:
    """Compare the attention masks of the real class with the spec's; None if neither has attention.

    The class runs under its default attention implementation. ``derived`` returns (program, values of the sizes) for a
    config; by default :func:`estimated`.
    """
    why = "the class does not run on the CPU"
    try:
        real, built = build(reference_of(model, case), replace(case, device="cpu"), model.file.path.parent, {})
        why = "the spec does not describe it"
        config = in_evaluation(model.spec, built)
        program, sizes = (derived or partial(estimated, model))(config)
        known = derived_pairs(model.graph(config), config, items_of(program, case.batch, "padded"))
        arguments = filled(arguments_of(program, case.batch, sizes, case.arguments), on_cpu)
        why = "the class does not run on the CPU"
        seen = real_pairs(real, arguments)
    except Exception as error:
        return Masks(unseen=f"{why}: {type(error).__name__}: {error}".splitlines()[0])
    if not (seen.attending or known.attending):
        return None
    return replace(compared(seen, known), unlike=other_implementation(real, arguments, seen))


def estimated(model: Model, config: Mapping[str, Any]) -> Estimated:
    """Derive (program, values of the sizes by letter) for a config."""
    program = model.lines(["full"], ["torch"], config)
    return program, InterpretedEstimator(program, config, regime="full", convention="torch").sizes


def reference_of(model: Model, case: LiveCase) -> str:
    """The class name of a case: the one that it states, else the first that the spec names.

    Raises:
        SymflopsError: neither names a class.
    """
    if not (case.reference or model.spec.references):
        raise SymflopsError(f"'{model.spec.name}' names no class to compare with: write 'reference: package.Class'")
    return case.reference or model.spec.references[0]


def passes(
    model: Model,
    real: Any,
    case: LiveCase,
    trained: InterpretedEstimator,
    inferred: InterpretedEstimator,
    aliases: list[str],
    lenient: bool,
) -> dict[str, Any]:
    """Measure and derive the FLOPs of a case, as fields of :class:`LiveReport` with their names.

    If ``lenient`` and the class does not run, the figures are 0, and ``unrun`` has the reason.

    Args:
        model: The spec.
        real: The real model.
        case: The case.
        trained: The estimator of training.
        inferred: The estimator of inference.
        aliases: All names of parameters.
        lenient: Whether a class may fail to run, as it does if an unfinished spec does not provide all inputs.
    """
    try:
        arguments = moved(arguments_of(trained.program, case.batch, trained.sizes, case.arguments), case.device)
        outputs = outputs_of(model)
        forward, backward = run(real, arguments, case, train=True, outputs=outputs)
        inference, nothing = run(real, arguments, case, train=False, outputs=outputs)
        moments = trained.moments(**case.batch)
    except SymflopsError as error:
        if not lenient:
            raise
        figures = dict.fromkeys(("forward", "backward", "inference", "inference_backward"), Figure(0, 0))
        return {**figures, "modules": (), "unrun": str(error).removeprefix(f"{case.label}: ")}
    work = trained.running(moments)
    return {
        "forward": Figure(forward.total, trained.forward(moments)),
        "backward": Figure(backward.total, trained.backward(moments)),
        "inference": Figure(inference.total, inferred.forward(moments)),
        "inference_backward": Figure(nothing.total, inferred.backward(moments)),
        "modules": tuple(different(forward.modules, work, [name for name, _ in real.named_modules()] + aliases)),
    }


def widths(program: Program, sizes: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield (letter, value) of the integer sizes that a shape may consist of: all but numbers of layers."""
    counts = {name for tensor in program.tensors for _, _, high, _ in tensor.ranges for name in symbols(high)}
    for name, value in sizes.items():
        if isinstance(value, int) and not isinstance(value, bool) and name not in counts:
            yield name, value


def build(
    reference: str, case: LiveCase, folder: Path | None = None, own: Mapping[str, Mapping[str, Any]] = OPTIONS
) -> tuple[Any, Mapping[str, Any]]:
    """Build the real model in evaluation mode; return (model, complete config with defaults).

    Args:
        reference: The name of the class.
        case: The case, with config and options.
        folder: The folder of the spec, for a class from a file in it.
        own: Further options of every class of a package, by package.

    Raises:
        SymflopsError: the class does not exist or cannot be built from the config.
    """
    kind = class_of(reference, folder)
    options = {**own.get(package_of(reference), {}), **case.options}
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
    """Return (first name of each parameter -> shape, every name -> first name of the same parameter)."""
    shapes = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
    first = {id(tensor): name for name, tensor in model.named_parameters()}
    return shapes, {name: first[id(tensor)] for name, tensor in model.named_parameters(remove_duplicate=False)}


def outputs_of(model: Model) -> tuple[str, ...]:
    """The names of a spec's outputs, which the loss sums."""
    return tuple(output.text for output in model.spec.outputs)


def run(
    model: Any, arguments: Mapping[str, Any], case: LiveCase, train: bool, modules: bool = True, outputs: Sequence[str] = ()
) -> tuple[Counts, Counts]:
    """Run and count both passes: (FLOPs of the forward pass, FLOPs of the backward pass).

    Args:
        model: The PyTorch module.
        arguments: Keyword arguments of the forward pass.
        case: The case, named in errors.
        train: Whether gradients are computed; without them the backward pass has 0 FLOPs.
        modules: Whether FLOPs are counted by module.
        outputs: Names of the outputs whose sum is the loss.

    Raises:
        SymflopsError: the model fails to run.
    """
    with needed("torch").set_grad_enabled(train), frozen(model, not train):
        forward, backward = both_passes(model, arguments, outputs, partial(counter, modules), f"{case.label}: ")
    return counted(forward, model), counted(backward, model)


@contextmanager
def frozen(model: Any, whole: bool) -> Iterator[None]:
    """Context manager that freezes all parameters if ``whole``: counters fail on views of trained ones."""
    trained = [tensor for tensor in model.parameters() if whole and tensor.requires_grad]
    try:
        for tensor in trained:
            tensor.requires_grad_(False)
        yield
    finally:
        for tensor in trained:
            tensor.requires_grad_(True)


def counted(mode: Any, model: Any) -> Counts:
    """Read the FLOPs that the counter ``mode`` has counted; a shared module counts under its first path."""
    first = {id(module): name for name, module in model.named_modules()}
    paths = {name: first[id(module)] for name, module in model.named_modules(remove_duplicate=False)}
    found: Counter[str] = Counter()
    for path, operators in mode.get_flop_counts().items():
        if "." in path:
            inner = path.partition(".")[2]
            found[paths.get(inner, inner)] += sum(operators.values())
    return Counts(int(mode.get_total_flops()), found)
