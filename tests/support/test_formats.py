"""The output formats of ``symflops check``: text with or without colours, JSON, and the annotations of GitHub."""

from __future__ import annotations

import json

import pytest

from symflops.cli.check import escaped
from symflops.cli.main import main
from symflops.support.findings import Diagnostic, Label, Source, Span
from tests.sampling import sampled
from tests.support.cases import CASES, FOLDER, LARGE

SMALL = [case for case in CASES if case not in LARGE]


@pytest.fixture
def run(capsys, monkeypatch):
    def call(case: str, *words: str) -> tuple[int, str, str]:
        monkeypatch.chdir(FOLDER / case)
        pages = [word for kind in ("regime", "convention") if (FOLDER / case / f"{kind}.yaml").is_file() for word in (f"--{kind}", f"{kind}.yaml")]
        code = main(["check", "spec.yaml", *pages, *words])
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("case", sampled(SMALL, 4, 1))
def test_json_is_one_object_that_says_what_the_text_says(run, case):
    text_code, _, text = run(case)
    code, out, err = run(case, "--output-format", "json")
    found = json.loads(out)
    assert code == text_code and "error[" not in err
    assert found["schema"] == 1 and list(found) == ["schema", "findings"]
    assert case in {finding["code"] for finding in found["findings"]}
    for finding in found["findings"]:
        assert list(finding) == ["code", "severity", "message", "path", "line", "column", "end", "label", "hint", "note", "also"]
        place = f"{finding['path']}:{finding['line']}:{finding['column']}: " if finding["path"] else ""
        assert f"{place}{finding['severity']}[{finding['code']}]: {finding['message']}" in text
        said = (finding["label"], finding["hint"], finding["note"], *(label["label"] for label in finding["also"]))
        assert all(line in text for words in said for line in words.splitlines())


@pytest.mark.parametrize("case", sampled(SMALL, 4, 1))
def test_github_gets_one_command_for_each_finding(run, case):
    code, out, _ = run(case, "--output-format", "github")
    findings = json.loads(run(case, "--output-format", "json")[1])["findings"]
    lines = out.splitlines()
    assert len(lines) == len(findings)
    for line, finding in zip(lines, findings, strict=True):
        command, _, rest = line.removeprefix("::").partition(" ")
        properties, _, message = rest.partition("::")
        told = dict(item.split("=", 1) for item in properties.split(","))
        assert command == {"note": "notice"}.get(finding["severity"], finding["severity"]) and told["title"] == finding["code"]
        if finding["path"]:
            assert (told["file"], told["line"], told["col"], told["endColumn"]) == (finding["path"].replace(":", "%3A"), str(finding["line"]), str(finding["column"]), str(finding["end"]))
        assert message.split("%0A")[0] == escaped(finding["message"])
    assert code == any(finding["severity"] == "error" for finding in findings)


def test_what_ends_a_command_is_escaped():
    assert escaped("100%\r\n::error::x,y:z") == "100%25%0D%0A::error::x,y:z"
    assert escaped("a,b:c%", ":,") == "a%2Cb%3Ac%25"


def test_a_spec_cannot_write_a_command_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text('language: 2\nname: "a\\n::error::b"\ngraph: []\noutputs: []\n')
    assert main(["check", "spec.yaml", "--output-format", "github"]) == 1
    out = capsys.readouterr().out
    assert all(line.startswith("::error file=spec.yaml,") for line in out.splitlines()) and "%0A::error::b" in out


def test_colours_are_for_terminals_that_want_them(run, monkeypatch):
    plain = run("width-mismatch")[2]
    assert "\x1b" not in plain
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    coloured = run("width-mismatch")[2]
    assert "\x1b[1;31merror[width-mismatch]\x1b[0m" in coloured
    assert __import__("re").sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert run("width-mismatch")[2] == plain


def test_labels_of_other_files_stand_under_their_own_heads():
    one, other = Source("one.yaml", "a: b\n"), Source("other.yaml", "\n\nc: d\n")
    found = Diagnostic("width-mismatch", "no", Span(one, 1, 4, 5), "yes", label="here", also=(Label(Span(other, 3, 1, 2), "there"),), note="so")
    assert found.render() == (
        "one.yaml:1:4: error[width-mismatch]: no\n"
        "   |\n"
        " 1 | a: b\n"
        "   |    ^ here\n"
        "   ::: other.yaml:3:1\n"
        "   |\n"
        " 3 | c: d\n"
        "   | - there\n"
        "   = note: so\n"
        "   = hint: yes"
    )
