"""What an editor shows while a spec is written: a real YAML language server reads the schema, and is asked at a cursor."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symflops.cli.main import main
from symflops.ops.table import ALL
from tests.shipped import FILES

pytestmark = pytest.mark.system
SERVER = "yaml-language-server@1.15.0"
SETTINGS = {"validate": True, "completion": True, "hover": True}
HEAD = "# yaml-language-server: $schema=schema.json\nlanguage: 2\nname: mine\nsizes: {D: {key: width, default: 8}}\nstreams: {text: [x]}\ninputs: {t: {stream: text, width: D}}\n"
SPECS = list(FILES.values())
BLOCKS = sorted(path.stem for path in (SPECS[0].root / "blocks").glob("*.yaml"))


class Editor:
    """A client of the language server protocol, over the server's standard streams."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.folder, self.asked, self.opened = folder, 0, 0
        completion = {"completionItem": {"snippetSupport": False}}
        capabilities = {"textDocument": {"completion": completion, "hover": {"contentFormat": ["plaintext"]}, "publishDiagnostics": {}}}
        self.ask("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities})
        self.send({"method": "initialized", "params": {}})
        self.send({"method": "workspace/didChangeConfiguration", "params": {"settings": {"yaml": SETTINGS}}})

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next message; a question of the server is answered first."""
        assert self.process.stdout
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            message: dict[str, Any] = json.loads(self.process.stdout.read(length))
            if "id" not in message or "method" not in message:
                return message
            asked = message.get("params", {}).get("items", ())
            told = [SETTINGS if item.get("section") == "yaml" else {} for item in asked]
            self.send({"id": message["id"], "result": told if message["method"] == "workspace/configuration" else None})

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        while (message := self.read()).get("id") != self.asked:
            pass
        return message.get("result")

    def opens(self, text: str) -> dict[str, Any]:
        """Open a text; its one ``|`` is the cursor, which is answered as a place."""
        before, _, after = text.partition("|")
        self.opened += 1
        uri = (self.folder / f"mine_{self.opened}.yaml").as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": before + after}
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        place = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        return {"textDocument": {"uri": uri}, "position": place}

    def suggested(self, text: str) -> set[str]:
        found = self.ask("textDocument/completion", self.opens(text))
        return {item["label"] for item in found["items"]}

    def shown(self, text: str) -> str:
        found = self.ask("textDocument/hover", self.opens(text))
        return str((found or {}).get("contents", {}).get("value", "")).replace("\\", "")

    def findings(self, text: str) -> list[str]:
        uri = self.opens(text)["textDocument"]["uri"]
        while (message := self.read()).get("params", {}).get("uri") != uri:
            pass
        return [item["message"] for item in message["params"]["diagnostics"]]


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    missing = [tool for tool in ("node", "npm") if not shutil.which(tool)]
    assert not missing, f"{', '.join(missing)} is missing: apt-get install nodejs npm"
    home, folder = tmp_path_factory.mktemp("server"), tmp_path_factory.mktemp("project")
    command = ["npm", "install", "--prefix", str(home), "--no-audit", "--no-fund", SERVER]
    told = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if told.returncode and any(word in told.stderr for word in ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN", "ECONNRESET")):
        pytest.skip("the npm registry cannot be reached")
    assert told.returncode == 0, told.stderr
    assert main(["schema", "spec", "-o", str(folder / "schema.json")]) == 0
    found = Editor([str(home / "node_modules" / ".bin" / "yaml-language-server"), "--stdio"], folder)
    yield found
    found.process.kill()
    found.process.wait()


FLOW, OPEN = "graph:\n  - a: {%s}\noutputs: [y]\n", "graph:\n  - a:\n      %s\noutputs: [y]\n"


def test_top_level_keys(editor: Editor) -> None:
    assert {"title", "reference", "derived", "blocks", "graph", "outputs", "baseline"} <= editor.suggested(HEAD + "|\n")
    assert "the operators in the order" in editor.shown(HEAD + (FLOW % "op: act, from: t, to: y").replace("graph", "gra|ph"))


@pytest.mark.parametrize("form", [FLOW, OPEN], ids=["flow", "block style"])
def test_operators_and_blocks_are_suggested_by_name(editor: Editor, form: str) -> None:
    assert {kind.name for kind in ALL} <= editor.suggested(HEAD + form % "op: |")
    assert BLOCKS and set(BLOCKS) <= editor.suggested(HEAD + form % "block: |")


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_the_fields_of_an_operator_are_suggested_and_explained(editor: Editor, kind: Any) -> None:
    names = {field.name for field in kind.fields if field.name != "op"}
    assert names <= editor.suggested(HEAD + OPEN % f"op: {kind.name}\n      |")
    for field in kind.fields:
        value = {"WORD": field.words[0] if field.words else "x", "FLAG": "true", "COUNT": "1", "AXES": "{x: x}", "WINDOW": "{x: 4}"}.get(field.form.name, "x")
        needed = "".join(f", {other.name}: {value_of(other)}" for other in kind.fields if other.required and other is not field)
        text = FLOW % f"op: {kind.name}{needed}, {field.name[:1]}|{field.name[1:]}: {value if field.form.name != 'FIELDS' else '{}'}"
        if field.form.name in ("WORD", "EXPRESSION", "VALUES", "TEXT", "NAME"):
            assert field.doc in editor.shown(HEAD + text), (kind.name, field.name)


def value_of(field: Any) -> str:
    """A value that a field takes."""
    return field.words[0] if field.words else {"FLAG": "true", "AXES": "{x: x}"}.get(field.form.name, "x")


@pytest.mark.parametrize("form", [OPEN], ids=["block style"])
def test_the_parameters_of_a_block_are_suggested_and_explained(editor: Editor, form: str) -> None:
    assert {"hidden", "width", "bias", "act"} <= editor.suggested(HEAD + form % "block: gated_mlp\n      |")
    assert {"from", "to", "add_to", "when"} <= editor.suggested(HEAD + form % "block: gated_mlp\n      |")
    call = FLOW % "block: gated_mlp, from: t, hidden: 3, width: D, to: y"
    assert "A gated feed-forward" in editor.shown(HEAD + call.replace("gated_mlp", "gated_|mlp"))
    assert "a parameter of the block gated_mlp" in editor.shown(HEAD + call.replace("hidden", "hid|den"))


@pytest.mark.parametrize(("wrong", "told"), [
    (FLOW % "op: conv, from: t, kernel: 3, width: D, strid: 2, to: y", "strid"), (FLOW % "op: convv, from: t, to: y", "conv"),
    (OPEN % "block: gated_mlp\n      from: t\n      hiddn: 3", "hidden"), ("graf: []\noutputs: [y]\n", "graf"),
])  # fmt: skip
def test_mistakes_are_told(editor: Editor, wrong: str, told: str) -> None:
    assert any(told in message for message in editor.findings(HEAD + wrong))


@pytest.mark.parametrize("spec", SPECS[:: max(1, len(SPECS) // 12)], ids=lambda file: file.name)
def test_a_shipped_spec_has_no_mistake(editor: Editor, spec: Any) -> None:
    text = spec.path.read_text("utf-8").replace("$schema=../schema.json", "$schema=schema.json")
    assert editor.findings(text.replace("|", " or ")) == []
