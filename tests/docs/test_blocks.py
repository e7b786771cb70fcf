"""Every block of README and the documentation runs: in the test of its page, or here by its language."""

from __future__ import annotations

import argparse
import doctest
import importlib
import json
import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from symflops.cli.main import COMMANDS, main
from tests.docs import (
    test_corpus,
    test_drafting,
    test_integrations,
    test_language,
    test_packing,
    test_questions,
    test_tracing,
    test_tutorial,
)
from tests.docs.pages import DOCS, ROOT, Block, blocks, commands, run, same
from tests.shipped import load

README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "PIPELINES.md", *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]
ELSEWHERE = {  # pages with a test of their own, and the languages that it runs
    "docs/tutorial.md": ({"python", "yaml", "json", "console"}, test_tutorial),
    "docs/drafting.md": ({"python", "json", "console"}, test_drafting),
    "docs/tracing.md": ({"console", "json", "python"}, test_tracing),
    "docs/corpus.md": ({"python", "console", "text"}, test_corpus),
    "docs/packing.md": ({"python"}, test_packing),
    "docs/questions.md": ({"python", "console"}, test_questions),
    "docs/integrations.md": ({"python", "text"}, test_integrations),
    "docs/reference/language.md": ({"yaml"}, test_language),
    "PIPELINES.md": ({"yaml"}, importlib.import_module("tests.verify.test_pipelines")),
}
WRITTEN = re.compile(r"<!-- written by docs/write\.py: .*? -->\n.*?<!-- end -->", re.DOTALL)
INSTALLS = ("python3 -m venv", ". .venv/bin/activate", "pip install", "python -m pytest")  # .ci/run runs these


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def own(page: Path) -> list[Block]:
    """The blocks of a page that docs/write.py does not write."""
    text = page.read_text("utf-8")
    lines = [range(text.count("\n", 0, part.start()), text.count("\n", 0, part.end())) for part in WRITTEN.finditer(text)]
    return [block for block in blocks(page) if not any(block.line in part for part in lines)]


def parsed(line: str) -> argparse.Namespace:
    """A command of symflops, as its parser takes it."""
    name, *words = shlex.split(line.partition(" > ")[0], comments=True)[1:]
    parser = argparse.ArgumentParser(prog=f"symflops {name}", exit_on_error=False)
    importlib.import_module(f"symflops.cli.{name}").configure(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_has_a_test(page):
    """Formulas are converted when the documentation is built."""
    text = page.read_text("utf-8")
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(list(blocks(page))), "a fence that no test reads: name its language"
    here = {"README.md": {"python", "yaml", "bash"}, "CONTRIBUTING.md": {"bash"}, "PIPELINES.md": {"bash"}, "docs/conventions.md": {"console", "yaml"}, "docs/extending.md": {"bash"}, "docs/vendoring.md": {"bash", "console"}, "docs/reference/regimes.md": {"bash"}}
    covered = {"math"} | here.get(named(page), set()) | ELSEWHERE.get(named(page), (set(), None))[0]
    assert {block.language for block in own(page)} <= covered


REGIMES = [line for block in own(DOCS / "reference" / "regimes.md") for line in block.text.splitlines() if block.language == "bash"]


@pytest.mark.parametrize("line", REGIMES)
def test_the_regimes_of_the_reference_run(line, capsys):
    assert main(shlex.split(line)[1:]) == 0
    assert {"llama", "bert_masked_lm"} & set(re.findall(r"\w+", capsys.readouterr().out))


def test_examples_of_commands_are_understood():
    """In the reference, and in the blocks and the table of README."""
    lines = [line for block in blocks(DOCS / "reference" / "cli.md") for line in block.text.replace("\\\n", " ").splitlines()]
    lines += [line for page in PAGES for block in own(page) if block.language == "bash" for line in re.split(r" && |\n", block.text)]
    lines += [code for row in re.findall(r"^\|.*\|$", README.read_text("utf-8"), re.MULTILINE) for code in re.findall(r"`(symflops \S+ [^`]*)`", row)]
    found = [line for line in lines if line.startswith("symflops ") and line.split()[1] in COMMANDS]
    assert len({line.split()[1] for line in found}) > 18 and len(found) > 40
    assert all(parsed(line) for line in found)
    assert all(line.startswith(("symflops --", 'eval "$(symflops ', "# ", *INSTALLS)) for line in lines if line.strip() and line not in found)


@pytest.mark.parametrize("block", [block for block in own(README) if block.language == "python"], ids=lambda block: f"line-{block.line}")
def test_readme_runs(block, capsys):
    if block.text.startswith(">>> "):
        tests = doctest.DocTestParser().get_doctest(block.text, {}, "README.md", "README.md", block.line)
        assert tests.examples and not doctest.DocTestRunner().run(tests).failed, capsys.readouterr().out
        return
    logged: list[dict[str, float]] = []
    model = tiny()
    names = {"model": model, "loader": [{"input_ids": model.dummy_inputs["input_ids"]}], "train": lambda batch: model(**batch).logits.sum().backward(), "log": logged.append}
    exec(compile("\n" * block.line + block.text, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    if "meter" in names:
        assert "parameters" in printed and "proven on the first step" in printed and "tflops_per_device" in logged[0]
    else:
        assert re.fullmatch(r"\d+ \d+ \d+\n", printed)


def tiny():
    import transformers

    return transformers.LlamaForCausalLM(transformers.LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, vocab_size=61))


def test_the_spec_of_readme_builds(tmp_path):
    (block,) = [block for block in own(README) if block.language == "yaml"]
    path = tmp_path / "example.yaml"
    body = "".join(f"  {line}\n" for line in block.text.splitlines())
    frame = test_language.FRAME.replace("  d: head_dim\n", "  d: head_dim\n  G: groups\n")
    path.write_text(f"{frame}{body}outputs: [h]\n", "utf-8")
    assert [operator.kind for operator in load(path).graph().operators()] == ["linear"] * 3 + ["attention", "linear", "add"]
    real = (ROOT / "specs" / "language" / "llama.yaml").read_text("utf-8").replace(", bias: biased", "")
    assert all(line in real for line in block.text.splitlines())


ASKED = [code for row in re.findall(r"^\|.*\|$", README.read_text("utf-8").partition("| to author |")[0], re.MULTILINE) for code in re.findall(r"`(symflops \S+ [^`]*)`", row) if "corpus" not in code and "vendor" not in code]


@pytest.mark.parametrize("line", ASKED)
def test_the_questions_of_readme_have_answers(line, capsys):
    """Commands that write files run in the tests of their pages."""
    assert main(shlex.split(line)[1:]) == 0
    out, err = capsys.readouterr()
    assert out.strip() and "Traceback" not in err


def test_the_shells_of_the_conventions_page(tmp_path):
    ran = 0
    for block in own(DOCS / "conventions.md"):
        if block.language == "yaml" and block.caption:
            (tmp_path / block.caption).write_text(block.text, "utf-8")
        elif block.language == "console":
            for command, shown in commands(block):
                status, printed = run(command, tmp_path)
                assert status == 0, printed
                assert same(shown, printed) if shown.strip() else printed.strip(), f"conventions.md:{block.line}\n{printed}"
                ran += 1
    assert ran == 2


def test_the_refusal_of_the_vendoring_page(tmp_path):
    (block,) = [block for block in own(DOCS / "vendoring.md") if block.language == "console"]
    ((command, shown),) = commands(block)
    status, printed = run(command, tmp_path)
    assert status == 2 and same(shown, printed), printed


def test_examples_of_blocks_are_calls():
    text = (DOCS / "reference" / "blocks.md").read_text("utf-8")
    sections = re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert {name for name, _ in sections} == {path.stem for path in (ROOT / "specs" / "blocks").glob("*.yaml")}
    for name, body in sections:
        (example,) = re.findall(r"^```yaml\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
        ((_, fields),) = [(path, fields) if isinstance(fields, dict) else ("", entry) for entry in YAML(typ="safe").load(example) for path, fields in [next(iter(entry.items()))]]
        assert fields["block"] == name
        required = re.search(r"It needs ([^.]*?)(?: and has|\.)", body)
        assert not required or set(re.findall(r"`(\w+)`", required[1])) <= set(fields)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]+)?\)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), (named(page), link)


def test_json_that_is_shown_is_json():
    shown = [block for page in PAGES for block in blocks(page) if block.language == "json"]
    assert shown and all(json.loads(block.text) for block in shown)
