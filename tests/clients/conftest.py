"""Every test of this folder needs a framework that ``.ci/clients`` installs, in an environment of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no client's test unless it is asked for by name: its framework may be missing."""
    asked = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    return True if collection_path.name.startswith("test_") and collection_path not in asked else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.elsewhere)
