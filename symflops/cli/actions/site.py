"""Writes the site of a library: a page with a calculator per model, and an index. It works without a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from symflops import __version__
from symflops.analysis.baseline import against, sources_of
from symflops.api import CONVENTIONS, Model, load, program_in
from symflops.cli.actions import site_resources as resources
from symflops.cli.actions.generate import Output, verified_digest
from symflops.cli.actions.stored_rules import BAKED, baked, compared, config_of, figures, stored_figures, stored_program
from symflops.emit.emit import ON_PAGES, page_of
from symflops.emit.html import document as html
from symflops.emit.html.calculator import Preset, Setting
from symflops.emit.html.drawing import pictures
from symflops.emit.javascript import script as javascript
from symflops.emit.page.sections import document
from symflops.evaluate.moments import per_token
from symflops.evaluate.typical_values import default_sizes
from symflops.evaluate.worked_figures import ConventionFigures, Worked
from symflops.ir.program import Program
from symflops.library.records.verified import (
    CHECKPOINTS,
    PUBLISHED,
    REPOSITORIES,
    checkpoints,
    published,
    repositories,
    verifications,
)
from symflops.read.spec_files import SpecFile, pages
from symflops.support.files import digest, package_digest
from symflops.support.reading import read_bytes
from symflops.verify.cases import cases_of

INDEX, ASSETS = "index.html", "assets"
PUBLISHED_NAME, CLASS_DEFAULT = "pub-", "pub-default"
"""Name prefix of records of published models, and the name of the record with the class's defaults."""


def structures(model: Model) -> list[Program]:
    """Return the programs of a page: that of the default config first, then one per variant."""
    return [structure(model, variant) for variant in ("", *model.variants)]


def structure(model: Model, variant: str) -> Program:
    """Load the stored program of a variant (empty for the defaults), or derive it."""
    stored = stored_program(model.file, variant, BAKED[0], CONVENTIONS)
    return stored or program_in(model.structure(variant, baked(model, variant)))


def compile_page(file: SpecFile) -> Output:
    """Derive one spec and render its page and scripts as files of a site.

    Raises:
        SpecError: the spec is not valid.
    """
    model = load(file)
    found = structures(model)
    program = found[0]
    folder = file.group or "models"
    scripts = {script_name(one): javascript.render(one, __version__) for one in found}
    setting = setting_of(file, model, found, tuple(scripts), f"../{INDEX}")
    shown = resources.linked(f"../{ASSETS}", more=(script_name(program),))
    beside = against(model, program)
    page = page_of(program, verifications(file), conventions=compared_figures(model, program, compared()), against=beside)
    derivation = document(page)
    files = {f"{folder}/{program.name}.html": html.render(program, derivation, __version__, setting, shown)}
    files |= {f"{folder}/{name}": text for name, text in scripts.items()}
    sources = {source.path: digest(source.text) for source in sources_of(model)}
    return Output(
        program.name, file.group, files, entry_of(file, program, page.worked, setting.presets), sources, verified_digest(file)
    )


def standalone(model: Model, program: Program | None = None, others: Sequence[str] = (), full: bool = True) -> str:
    """Render a model, or one ``program`` of it, as a self-contained HTML page.

    ``others`` are the conventions that the page compares, ``full`` says whether it has the derivation.

    Raises:
        SpecError: the spec is not valid.
    """
    found = structures(model) if program is None else [program]
    setting = setting_of(model.file, model, found, ("",) * len(found), "")
    carried = resources.within(tuple(javascript.render(one, __version__) for one in found))
    shown = found[0]
    names = [regime.name for regime in shown.regimes]
    counted = compared_figures(model, shown, others)
    beside = against(model) if program is None and full else None
    regimes = [name for name in ON_PAGES if name in names] or names
    derivation = document(page_of(shown, verifications(model.file), regimes if full else regimes[:1], counted, beside), full)
    return html.render(shown, derivation, __version__, setting, carried)


def compared_figures(model: Model, program: Program, against: Sequence[str]) -> tuple[ConventionFigures, ...]:
    """Return the figures of a typical batch under each convention of ``against``, stored or derived.

    The result is empty if the first convention of ``program`` is not a shipped one.
    """
    if not against or program.conventions[0] not in pages("conventions"):
        return ()
    stored = stored_figures(model.file, program, against)
    return figures(model, program, against) if stored is None else stored


def setting_of(file: SpecFile, model: Model, found: Sequence[Program], scripts: Sequence[str], home: str) -> Setting:
    """Collect the parts of a page besides the derivation: presets, drawing, scripts and records.

    ``scripts`` are the addresses of the scripts of the programs ``found``, ``home`` is that of the index.
    """
    return Setting(
        family=file.group,
        presets=tuple(presets(file, model, found[0])),
        drawing=pictures(model.graph(config_of(found[0])).to_networkx()),
        estimators=tuple((javascript.key_of(one), script) for one, script in zip(found, scripts, strict=True)),
        home=home,
        records=tuple(case for item in verifications(file) for case in item.cases),
    )


def script_name(program: Program) -> str:
    """File name of a program's JavaScript estimator."""
    return f"{javascript.key_of(program).replace('/', '_')}.js"


def presets(file: SpecFile, model: Model, program: Program) -> Iterable[Preset]:
    """Yield a preset per measured model, checkpoint and variant; also examples if a size has no default."""
    measured = published(file)
    known = [item for item in measured if item.name.startswith(PUBLISHED_NAME) and item.name != CLASS_DEFAULT]
    batch = known[0].batch if known else {}
    for item in known:
        label, class_name = item.name.removeprefix(PUBLISHED_NAME), item.reference.rpartition(".")[2]
        label = f"{label} ({class_name})" if len(program.references) > 1 else label
        yield Preset(label, item.config, item.batch, f"measured: record {item.name} of {class_name}", item.name)
    for checkpoint in checkpoints(file):
        yield Preset(checkpoint.name, checkpoint.config, batch, checkpoint.source)
    for name, config in model.variants.items():
        if not any(name in item.name for item in measured):
            yield Preset(name, config, batch, "a variant of the spec")
    if default_sizes(program) is None:
        rest = [item for item in measured if item not in known]
        yield from (Preset(f"record {item.name}", item.config, item.batch, "a measured record", item.name) for item in rest)
        cases = () if measured else cases_of(file)
        for number, case in enumerate(cases, 1):
            yield Preset(f"example {number}", case.config, case.batch, "a case for verification")


def entry_of(file: SpecFile, program: Program, figures: Worked | None, presets: Iterable[Preset] = ()) -> dict[str, Any]:
    """Build the entry of a model in the index: the fields of :class:`symflops.emit.html.document.Entry`.

    FLOPs per step and token are those of ``figures`` in the first regime, None without.
    """
    first = figures.regimes[0] if figures else None
    step = first.forward + first.backward if first else None
    return {
        "name": program.name,
        "group": file.group,
        "title": program.title,
        "references": list(program.references),
        "pipelines": list(program.pipelines),
        "model_types": list(program.model_types),
        "parameters": html.default_parameters(program),
        "verified": sum(len(item.cases) for item in verifications(file)),
        "step": step,
        "token": per_token(step, first.tokens) if first and step else None,
        "names": [*(preset.label for preset in presets), *repositories(file)],
    }


def index(entries: Sequence[Mapping[str, Any]]) -> str:
    """Render the index page of all models."""
    linked = resources.linked(ASSETS, resources.SEARCH)
    return html.render_index([html.Entry(**entry) for entry in entries], __version__, linked)


def resource_files() -> Iterable[tuple[str, bytes]]:
    """Yield (path in the site, content) of each style sheet and script."""
    return ((f"{ASSETS}/{name}", data) for name, data in resources.files())


def code_digest(root: Path) -> str:
    """Return one digest of all that every page depends on: the package, records of published models."""
    paths = (root / name for name in (PUBLISHED, CHECKPOINTS, REPOSITORIES))
    return digest(package_digest() + "".join(digest(read_bytes(path)) for path in paths if path.is_file()))
