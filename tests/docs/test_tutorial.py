"""The tutorial, executed literally: its files written and its commands run, in order, in an empty folder."""

from __future__ import annotations

import pytest

from tests.docs.pages import DOCS, blocks, commands, run, same


@pytest.mark.thorough
def test_the_tutorial_does_what_it_shows(tmp_path):
    written, ran = [], []
    for block in blocks(DOCS / "tutorial.md"):
        if block.language == "console":
            for command, shown in commands(block):
                status, printed = run(command, tmp_path)
                assert status == 0, f"tutorial.md:{block.line}: {command}: exit code {status}\n{printed}"
                assert same(shown, printed), f"tutorial.md:{block.line}: {command}\nshown:\n{shown}\nprinted:\n{printed}"
                ran.append(command)
        else:
            assert block.caption, f"tutorial.md:{block.line}: a block that is neither a file nor a command is not tested"
            path = tmp_path / block.caption
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, "utf-8")
            written.append(block.caption)
    assert {"tandem.py", "tandem.yaml", "tandem.cases.yaml", "use.py"} <= set(written) and len(ran) >= 10
    assert sum(command.startswith("symflops verify tandem.yaml") for command in ran) == 4
    code = [line for line in (tmp_path / "tandem.py").read_text("utf-8").splitlines() if line.strip()]
    assert 40 <= len(code) <= 65
    spec = "".join(path.read_text("utf-8") for path in [tmp_path / "tandem.yaml", *(tmp_path / "blocks").glob("*.yaml")])
    assert all(word in spec for word in ("query: [tq, iq]", "local:", "experts:", "bottleneck"))


@pytest.mark.parametrize(("shown", "real", "equal"), [("a\n...\nc\n", "a\nb\nb\nc\n", True), ("a 1\n", "a 2\n", False), ("", "something\n", False), ("x: ...: y\n", "x: 1.2: y\n", True), ("...\nc\n", "a\n", False)])
def test_what_counts_as_shown(shown, real, equal):
    assert same(shown, real) is equal
