"""The project's own rules: imports point one way, files stay small, nothing executes what a spec says."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import networkx
import pytest

from symflops import moved
from symflops.api import convention_of, regime_of
from symflops.compiler import Goal, Request, compile_spec
from symflops.support.findings import Source

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "symflops"
FILES = sorted(PACKAGE.rglob("*.py"))

# from the bottom up: a module imports from its own layer or from one before it. A folder is a layer, unless a file of it is named.
LAYERS = (
    ("moved", "support"), ("formula",), ("ir",), ("read.spec_files",), ("evaluate", "training.devices"), ("ops",), ("read",), ("build",), ("derive",), ("count",), ("lower",),
    ("evaluate.specialise", "evaluate.folding", "evaluate.assumed", "evaluate.misfit"), ("emit",), ("compiler",), ("library.records",), ("api",), ("library",), ("lookup",),
    ("training.introspect",), ("training.meter",), ("training.frameworks",), ("analysis",), ("verify",), ("cli.actions",), ("draft",), ("cli",), ("__main__",),
)  # fmt: skip
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# the same within a folder, of its files and sub-folders; what is on one line may import each other's files, but in no cycle
ORDERS = {
    "build": (
        ("roles", "scopes", "streams"), ("graph_builder", "index_conditions"), ("services",), ("iterations", "operators"),
        ("segments",), ("entries",), ("build",),
    ),
    "emit": (("code", "grouping", "rendering"), ("math", "python"), ("page",), ("html", "javascript", "latex", "markdown", "skeleton", "sql", "vendor"), ("emit",)),
    "draft": (
        ("vary",), ("trace",), ("fold",), ("sample",), ("fit",), ("polish", "write"), ("prove", "study"), ("draft",),
    ),
}  # fmt: skip
FORBIDDEN = {"eval", "exec", "compile", "sympify", "parse_expr", "__import__"}


def layer(module: str) -> str:
    """The layer of a module: the file itself where it is named, else its folder."""
    parts = module.split(".")[1:3]
    return ".".join(parts) if ".".join(parts) in RANK else parts[0] if parts else ""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


@cache
def imports(path: Path) -> list[str]:
    found = []
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
    return [name for name in found if name.startswith("symflops.")]


def test_every_layer_is_listed():
    names = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES} - {"__init__", "generated"}
    assert names == {name.partition(".")[0] for name in RANK}


def test_imports_point_one_way():
    owners = {path: layer("symflops." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)) for path in FILES}
    known = {path: own for path, own in owners.items() if own not in ("__init__", "generated")}
    assert not [f"{path.relative_to(ROOT)} imports {module}, which lies above it" for path, own in known.items() for module in imports(path) if RANK[layer(module)] > RANK[own]]


@pytest.mark.parametrize("folder", ORDERS)
def test_imports_within_a_folder_point_one_way(folder):
    ranks = {name: rank for rank, names in enumerate(ORDERS[folder]) for name in names}
    paths = sorted((PACKAGE / folder).rglob("*.py"))
    parts = {path: path.relative_to(PACKAGE / folder).with_suffix("").parts for path in paths}
    assert ranks.keys() == {names[0] for names in parts.values()} - {"__init__"}
    for path in paths:
        for module in imports(path):
            used = module.split(".")
            if used[1] == folder and len(used) > 2 and parts[path][0] in ranks:
                assert ranks[used[2]] <= ranks[parts[path][0]], f"{path.relative_to(ROOT)} imports {module}, which lies above it"


def test_no_modules_import_each_other():
    """Imports for types and those within functions count; the lazy ones of the root package do not."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
    graph = networkx.DiGraph()
    for name, path in names.items():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.module and name != PACKAGE.name:
                members = (f"{node.module}.{alias.name}" for alias in node.names)
                graph.add_edges_from((name, member if member in names else node.module) for member in members)
    assert not [sorted(found) for found in networkx.strongly_connected_components(graph) if len(found) > 1]


def test_operators_targets_and_commands_do_not_know_each_other():
    for folder, allowed in (("ops", {"kind", "table", "elementwise", "attention_blocks"}), ("cli", {"amounts", "progress", "terminal", "estimate", "main", "actions"})):
        for path in sorted((PACKAGE / folder).glob("*.py")):
            if path.stem in ("table", "main"):
                continue
            for module in imports(path):
                parts = module.split(".")
                if parts[1] == folder and len(parts) > 2:
                    assert parts[2] in allowed, f"{path.name} imports its sibling {module}"


def test_folders_are_few_and_import_each_other_one_way():
    kept = [path.relative_to(PACKAGE).parts for kind in ("*.py", "*.yaml") for path in PACKAGE.rglob(kind)]  # no caches of what has moved
    folders = {parts[0] for parts in kept if len(parts) > 1}
    assert len(folders) <= 20
    edges = {(path.relative_to(PACKAGE).parts[0], module.split(".")[1]) for path in FILES for module in imports(path)}
    graph = networkx.DiGraph((one, two) for one, two in edges if one != two and {one, two} <= folders - {"generated"})
    assert networkx.is_directed_acyclic_graph(graph), networkx.find_cycle(graph)


def test_few_files_share_a_name():
    names = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert not {name: count for name, count in names.items() if count > 3}


@pytest.mark.parametrize("old", ["adapters.verl", "catalog.explanation", "devices.peaks", "diagnostics.findings", "live.model", "meter.mfu", "questions.solve", "runtime.lengths", "witness.peers"])
def test_a_published_path_is_the_module_that_moved(old):
    folder, _, file = old.partition(".")
    new = moved.FILES.get(old, f"{moved.FOLDERS[folder]}.{file}")
    assert importlib.import_module(f"symflops.{old}") is importlib.import_module(f"symflops.{new}")
    with pytest.raises(ModuleNotFoundError, match=f"symflops.{folder}.nothing"):
        importlib.import_module(f"symflops.{folder}.nothing")


def test_files_are_small_and_documented():
    assert not [path for path in FILES if len(path.read_text("utf-8").splitlines()) > 400]
    assert not [path for path in FILES if not ast.get_docstring(parsed(path)) and path.name != "__init__.py"]


def ways_in(path):
    """What a file calls or imports that could run a text, as messages."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and (getattr(node.func, "id", "") in FORBIDDEN or getattr(node.func, "attr", "") in ("sympify", "parse_expr")):
            yield f"{path.name}:{node.lineno} calls {ast.unparse(node.func)}"
        if isinstance(node, (ast.Import, ast.ImportFrom)) and path.name != "yaml_nodes.py":
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            if any(name.split(".")[0] == "yaml" for name in names):
                yield f"{path.name}:{node.lineno} uses PyYAML"


def test_nothing_executes_text():
    assert not [found for path in FILES for found in ways_in(path)]
    reader = PACKAGE / "read" / "yaml_nodes.py"  # its events alone, from which nothing is made
    used = [node.attr for node in nodes(reader) if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "yaml"]
    assert sorted(used) == ["CSafeLoader", "YAMLError", "parse"]


@pytest.mark.parametrize("text", ["eval(x)", "exec(x)", "sympy.sympify(x)", "parse_expr(x)", "import yaml", "from yaml import load"])
def test_a_way_in_is_seen(tmp_path, text):
    (tmp_path / "a.py").write_text(text)
    assert len(list(ways_in(tmp_path / "a.py"))) == 1


def test_no_model_is_known_by_name_in_code():
    classes = re.compile(r"\b(\w+For\w+(LM|Generation|Classification)|\w+Transformer[23]DModel|Llama|Qwen\w*|Flux|DeepseekV\d)\b")
    for path in FILES:
        texts = [node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        docs = {ast.get_docstring(node, clean=False) for node in nodes(path) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))}
        for text in texts:
            assert text in docs or not classes.search(text), f"{path.name} knows {text!r}"
        for node in nodes(path):
            if isinstance(node, ast.Name):
                assert not classes.search(node.id), f"{path.name}:{node.lineno}"


STAGES = {"read": "read", "build": "build", "derive": "derive", "count": "count", "lower": "lower", "emit": "emit"}


def test_the_docstring_of_the_driver_names_the_stages():
    doc = ast.get_docstring(ast.parse((PACKAGE / "compiler.py").read_text("utf-8"))) or ""
    assert [line.split()[0] for line in doc.splitlines() if line.startswith("    ") and "->" in line] == list(STAGES)


def test_the_driver_calls_the_stages_in_order():
    """Source in, texts out: the first call of each stage's public function, as it happens."""
    source = Source("tiny.yaml", "language: 2\nname: tiny\nsizes: {D: width}\nstreams: {text: [x]}\ninputs: {t: {stream: text, width: D}}\n"
                    "graph:\n  - a: {op: linear, from: t, width: D, to: t}\noutputs: [t]\n")  # fmt: skip
    called: dict[str, None] = {}

    def note(frame, event, _):
        name = frame.f_code.co_name
        if event == "call" and frame.f_code.co_filename == str(PACKAGE / STAGES.get(name, "") / f"{name}.py"):
            called.setdefault(name)

    sys.setprofile(note)
    try:
        made = compile_spec(source, Request(Goal.TEXTS, (((regime_of("full"), 1),),), (convention_of("symflops"),), ("json", "py", "tex", "md")))
    finally:
        sys.setprofile(None)
    assert list(called) == list(STAGES)
    assert list(made.texts) == ["json", "py", "tex", "md"] and all(made.texts.values())


def test_shipped_specs_are_short():
    limits = {"llama": 45, "qwen_image": 60}  # of all classes that they describe
    for path in (ROOT / "specs").glob("*/*.yaml"):
        if path.stem in limits:
            text = re.sub(r"^pipelines: .*?\]\n", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)  # names alone
            assert len(text.splitlines()) <= limits[path.stem]
