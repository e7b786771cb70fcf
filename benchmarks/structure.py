"""Prints the structure of the package: size per folder, longest function, deepest inheritance, import cycles.

Usage: ``python benchmarks/structure.py [FOLDER]`` (default ``symflops``). Statements are counted by ``ast``, docstrings apart.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx


def statements(tree: ast.AST) -> int:
    """Statements of a module, without docstrings and other bare strings."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    constants = [node.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return len(nodes) - sum(isinstance(constant.value, str) for constant in constants)


def functions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and name of each function."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield (node.end_lineno or node.lineno) - node.lineno + 1, node.name


def module_name(path: Path, root: Path) -> str:
    """The dotted name of a file of the package at ``root``."""
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """The modules of the package that a module imports, for types too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found = full if full in known else node.module
                if found in known and "." in found:
                    yield found


def depth(name: str, bases: dict[str, list[str]]) -> int:
    """How many classes of the package stand above ``name``, itself included."""
    return 1 + max((depth(base, bases) for base in bases[name] if base in bases and base != name), default=0)


def main() -> None:
    """Print the tables."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "symflops").resolve()
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(root.rglob("*.py"))}
    names = {module_name(path, root): path for path in trees}
    folders: dict[str, list[Path]] = defaultdict(list)
    for path in trees:
        folders[path.relative_to(root).parent.as_posix()].append(path)
    print(f"{'folder':<24}{'files':>6}{'lines':>8}{'median':>8}{'statements':>12}{'longest function':>18}")
    for folder, paths in sorted(folders.items()):
        lines = [len(path.read_text("utf-8").splitlines()) for path in paths]
        longest = max((found for path in paths for found in functions(trees[path])), default=(0, ""))
        count = sum(statements(trees[path]) for path in paths)
        sizes = f"{len(paths):>6}{sum(lines):>8}{statistics.median(lines):>8.0f}{count:>12}"
        print(f"{folder:<24}{sizes}  {longest[0]:>4} {longest[1]}")
    imported = sum(isinstance(node, (ast.Import, ast.ImportFrom)) for tree in trees.values() for node in ast.walk(tree))
    print(f"statements: {sum(statements(tree) for tree in trees.values())}, of which imports: {imported}")
    bases = {
        node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
        for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }  # fmt: skip
    deepest = max(bases, key=lambda name: depth(name, bases))
    print("deepest inheritance:", depth(deepest, bases), deepest)
    graph = networkx.DiGraph((name, used) for name, path in names.items() for used in imports(trees[path], set(names)))
    print("import cycles:", [sorted(found) for found in networkx.strongly_connected_components(graph) if len(found) > 1])


if __name__ == "__main__":
    main()
