"""Drafts a spec: studies each config, merges the documents, and proves the result on the real module.

In a subprocess, drafting is killed if it hangs or takes too much memory, but its findings are kept.

Example inputs of a class come from a case of its spec, or follow from its ``main_input_name``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from symflops.api import load
from symflops.draft.fit.conditions import guards_between
from symflops.draft.polish.merge import Branch, leaves, merged
from symflops.draft.prove.verdict import prove
from symflops.draft.sample.samples import with_published_levels
from symflops.draft.study import Draft, Study, study_config
from symflops.draft.trace.steps import Subject, full_config
from symflops.draft.write.draft_document import Document
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.read.spec_files import roots, specs_in
from symflops.support.errors import SymflopsError
from symflops.verify.cases import cases_of
from symflops.verify.classes import referenced
from symflops.verify.limits import EndedError, TooLongError, in_process
from symflops.verify.running import arguments_of, needed

GRACE = 3.0  # times the time limit, before the process is killed
START_SECONDS = 60.0
MEMORY = 3 << 30  # bytes of data that the process may allocate


def draft(
    subject: Subject,
    timeout: float = 120.0,
    tell: Callable[[str], None] = lambda _: None,
    published: Sequence[Subject] = (),
    variants: Mapping[str, Subject] = MappingProxyType({}),
    keep: Callable[[Draft], None] = lambda _: None,
) -> Draft:
    """Draft a spec of a module class and prove it; returns the draft with its verdicts.

    Args:
        subject: The class, a config and arguments.
        timeout: Limit for each config, in seconds of processor time.
        tell: Receives progress messages, one line each.
        published: The class with further configs and arguments, for which the draft must be exact.
        variants: Name of a variant -> the class with its config and arguments, for drafting in the same spec.
        keep: Receives the unfinished draft after each stage.

    Raises:
        SymflopsError: The module does not run, or no field of the configs tells the variants apart.
        GateError: Its tape differs from PyTorch's counter.
    """
    started, processor = time.monotonic(), time.process_time()
    subject = with_published_levels(subject, published)
    subjects = {"": subject, **variants}
    check_variants(subjects)
    found = Draft(subject, tuple(subjects))
    studies: list[Study] = []
    document = merged_document(
        found, studies, (study_config(name, one, timeout, tell, found, keep) for name, one in subjects.items())
    )
    if document is not None:
        found.text, found.unsolved = document.text, [(one.place, one.values) for one in document.unsolved]
        keep(found)
        prove(found, document, studies, published, processor + timeout * len(studies), timeout)
    found.decide += dict.fromkeys(one for study in studies for one in decisions(study, found))
    found.seconds = time.monotonic() - started
    found.processor = time.process_time() - processor
    return found


def merged_document(found: Draft, studies: list[Study], coming: Iterable[Study]) -> Document | None:
    """Merge the documents of all variants into one; None after an internal error, described in ``found.given_up``.

    Each of the ``coming`` studies, made on demand, is appended to ``studies``.
    """
    try:
        for study in coming:
            studies.append(study)
        return merged([Branch(one.name, one.document, one.family.samples[0].config, one.subject.config) for one in studies])
    except (SymflopsError, TooLongError):
        raise
    except Exception as error:  # must not lose the findings so far
        found.given_up = f"the graph could not be written: {type(error).__name__}: {error}"
        return None


def check_variants(subjects: Mapping[str, Subject]) -> None:
    """Check, before drafting, that a condition on config fields can distinguish the variants.

    ``subjects`` maps the name of each variant to its class and config.

    Raises:
        SymflopsError: No condition can, or a config does not build.
    """
    configs = []
    for one in subjects.values() if len(subjects) > 1 else ():
        try:
            configs.append(full_config(one.build(), one.config))
        except Exception as error:
            raise SymflopsError(f"{one.reference} does not build: {type(error).__name__}: {error}") from error
    if configs:
        guards_between(configs, [key for one in subjects.values() for key in leaves(one.config)], set(), list(subjects))


def decisions(study: Study, found: Draft) -> Iterator[str]:
    """Yield the questions about a study that a person must decide, as texts of one line."""
    yield "which pairs of attention are useful (masks and windows): the draft counts all that is executed"
    if study.family.refused:
        yield f"{study.family.refused} samples had another structure: a variant, or a condition in the graph"
    for variable in [] if found.given_up else study.family.structural:
        yield f"{variable.lead.label} changes the structure"


def draft_in_process(
    subject: Subject,
    timeout: float,
    tell: Callable[[str], None],
    published: Sequence[Subject] = (),
    variants: Mapping[str, Subject] = MappingProxyType({}),
    most: int = MEMORY,
) -> Draft:
    """Draft in a copy of this process, with the arguments of :func:`symflops.draft.draft.draft`.

    ``most`` limits the data that the copy allocates, in bytes. A system that cannot copy a process drafts in this one.

    Returns:
        The draft. One that is given up has the findings so far, perhaps no text.

    Raises:
        SymflopsError: Drafting raised it, or there were no findings in time.
    """
    if not hasattr(os, "fork"):
        return draft(subject, timeout, tell, published, variants)
    known: list[Draft] = []

    def work(send: Callable[[str, Any], None]) -> Draft:
        needed("torch").set_num_threads(1)  # the threads of the first process do not exist here
        return draft(subject, timeout, partial(send, "tell"), published, variants, partial(send, "known"))

    seconds = GRACE * timeout * (1 + len(variants)) + START_SECONDS
    try:
        return in_process(
            work, seconds, "drafting", most, lambda kind, value: (tell if kind == "tell" else known.append)(value)
        )
    except EndedError as error:
        if not known:
            raise SymflopsError(f"{subject.reference} cannot be drafted: {error}, before anything was found") from None
        known[-1].given_up = str(error)
        return known[-1]


Example = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


def example_of(reference: str) -> Example | None:
    """(Config, arguments, options) with which a class runs at a small size; None if no example is known.

    The arguments are described by shape or values, as in :class:`Subject`. The options are further arguments of the class.
    """
    package, _, name = reference.partition(":")
    dotted = f"{package}.{name}"
    for file in specs_in(roots()[0]):
        if name not in file.source().text:
            continue
        model = load(file.path)
        if dotted not in model.spec.references:
            continue
        for case in cases_of(file):
            if case.reference in ("", dotted):
                return from_case(model, case)
    return example_token(reference)


def from_case(model: Any, case: Any) -> Example:
    """(Config, arguments described by shape or values, options) of a case of a spec."""
    config = dict(case.config)
    program = model.program(["full"], ["torch"], config)
    sizes = InterpretedEstimator(program, config, regime="full", convention="torch").sizes
    arguments = arguments_of(program, case.batch, sizes, case.arguments)
    return config, {name: described(value) for name, value in arguments.items()}, dict(case.options)


def described(value: Any) -> Any:
    """Nested arguments with each tensor as a dict: shape and dtype on the meta device, else value and dtype."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = str(value.dtype).rpartition(".")[2]
        if value.device.type == "meta":
            return {"shape": list(value.shape), "dtype": dtype}
        return {"value": value.tolist(), "dtype": dtype}
    if isinstance(value, dict):
        return {name: described(item) for name, item in value.items()}
    return [described(item) for item in value] if isinstance(value, (list, tuple)) else value


def example_token(reference: str) -> Example | None:
    """(Empty config, arguments, no options) with token ids or pixels, by the class's ``main_input_name``.

    None for classes that read something else.
    """
    kind = referenced(reference)
    main = getattr(kind, "main_input_name", "")
    if getattr(kind, "config_class", None) is None:
        return None
    config = kind.config_class()
    if main == "input_ids":
        inputs: dict[str, Any] = {"input_ids": {"shape": [2, 12], "dtype": "int64"}}
        if getattr(config, "is_encoder_decoder", False):
            inputs["decoder_input_ids"] = {"shape": [2, 7], "dtype": "int64"}
        return {}, inputs, {}
    size = getattr(config, "image_size", None)
    if main == "pixel_values" and size:
        sides = list(size) if isinstance(size, (list, tuple)) else [size, size]
        return {}, {"pixel_values": {"shape": [2, getattr(config, "num_channels", 3), *sides], "dtype": "float32"}}, {}
    return None
