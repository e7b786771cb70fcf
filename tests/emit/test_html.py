"""HTML pages without a browser: texts are escaped, scripts cannot be closed early, and the calculator starts with a valid batch."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from symflops.cli.actions import site_resources as resources
from symflops.emit.emit import page_of
from symflops.emit.html import document as html
from symflops.emit.html.calculator import Preset, Setting, needed_lengths
from symflops.emit.javascript import script as javascript
from symflops.emit.page.sections import document
from tests.emit.programs import SPECS, program
from tests.shipped import load

EVIL = '</script><script>alert(1)</script>"\'<b>&amp;'


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    VOID = ("meta", "link", "input", "wbr", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        if tag == "script":
            self.scripts.append("")
        if tag not in self.VOID and not (self.open and "svg" in self.open and tag in ("path", "rect", "circle")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def made(title: str = "Llama, a model", label: str = "8b") -> str:
    model = program(SPECS[1])
    fields = tuple(replace(field, doc=title) for field in model.fields)
    model = replace(model, title=title, fields=fields, regimes=tuple(replace(regime, doc=title) for regime in model.regimes))
    setting = Setting("language", (Preset(label, {"hidden_size": title}, {"text": [1024]}),), "", (("llama", "llama.js"),), "../index.html")
    regimes = [regime.name for regime in model.regimes]
    return html.render(model, document(page_of(model, (), regimes)), "0.1.0", setting, resources.linked("../assets", more=("llama.js",)))


def test_texts_of_a_spec_are_texts_on_its_page():
    plain, evil = Elements(made()), Elements(made(EVIL, EVIL))
    assert evil.found.count("script") == plain.found.count("script")
    assert "b" not in evil.found
    data = next(json.loads(text) for text in evil.scripts if text.startswith("{"))
    assert data["presets"][0]["label"] == EVIL
    assert data["presets"][0]["config"] == {"hidden_size": EVIL}
    assert not evil.open


def test_a_script_within_a_page_cannot_end_its_element():
    inside = resources.within((f'const title = "{EVIL}"; // <!-- {EVIL}',))
    page = Elements(inside.styles + inside.scripts)
    assert page.found.count("script") == 1 + len(resources.SCRIPTS)
    assert not page.open
    assert "url(fonts/" not in inside.styles and "url(data:font/woff2" in inside.styles
    text = javascript.render(replace(program(SPECS[1]), title=EVIL), "0.1.0")
    assert f"const TITLE = {json.dumps(EVIL)};" in text


def test_an_index_finds_by_name_class_and_family():
    entry = html.Entry("x", "language", EVIL, ["transformers.XForCausalLM"], ["XPipeline"], ["x"], 12345, 2, names=["Owner/X-8B"])
    text = html.render_index([entry], "0.1.0", resources.linked("assets", resources.SEARCH))
    assert Elements(text).found.count("script") == Elements(html.render_index([], "0.1.0", resources.linked("assets", resources.SEARCH))).found.count("script")
    assert {"transformers.xforcausallm", "xpipeline", "language", "x", "owner/x-8b"} <= set(entry.shown["words"].split())
    assert 'data-value="12345">12,345<' in text and 'data-value="2">2<' in text and 'href="language/x.html"' in text


@pytest.mark.parametrize(("title", "head", "rest"), [
    ("Llama, a causal decoder", "Llama", "A causal decoder"), ("ResNet", "ResNet", ""), ("", "name", ""),
    ("Mixture: experts, routed", "Mixture", "Experts, routed"),
])  # fmt: skip
def test_a_title_is_a_name_and_what_is_said_of_it(title, head, rest):
    assert html.title_of(title, "name") == head
    assert html.rest_of_title(title, head) == rest


def test_a_calculator_begins_with_every_stream_that_a_batch_must_give():
    wan = load("wan").typical()
    assert needed_lengths(wan, {"latent": [[21, 60, 104], [21, 60, 104]]}) == {"prompt": [1024, 1024]}
    assert set(needed_lengths(wan, {})) == {stream.name for stream in wan.streams if stream.given and not stream.optional}


def test_every_asset_is_there():
    names = [name for name, _ in resources.files()]
    assert {*resources.STYLES, *resources.SCRIPTS, *resources.SEARCH, "katex/LICENSE"} <= set(names)
    assert sum(name.endswith(".woff2") for name in names) == 20
    style = (resources.ASSETS / "katex/katex.min.css").read_text()
    assert all(f"katex/{path}" in names for path in re.findall(r"url\((fonts/[\w-]+\.woff2)\)", style))
