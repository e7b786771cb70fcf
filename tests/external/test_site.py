"""The site in a browser: every page is sound, the calculator is exact, and people on phones, keyboards and screen readers can use it."""

from __future__ import annotations

import importlib
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, Page, expect

from symflops.cli.main import main
from symflops.library.records.verified import published
from symflops.read.spec_files import find_spec
from tests.external.conftest import MODELS, Site, Watched
from tests.shipped import some

pytestmark = pytest.mark.system

SOUND = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)], names = (found) => found.map((e) => e.outerHTML.slice(0, 120));
  const label = (e) => e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim();
  const ids = all("[id]").map((e) => e.id);
  return {
    "formulas that KaTeX cannot set": names(all(".katex-error")),
    "formulas that were left": names(all(".tex:not(.set)")),
    "formulas without MathML": names(all(".tex.set").filter((e) => !e.querySelector("math"))),
    "identifiers that stand twice": ids.filter((id, i) => ids.indexOf(id) !== i),
    "links to nothing here": all('a[href^="#"]').map((a) => a.hash.slice(1)).filter((id) => !document.getElementById(id)),
    "fields without a label": names(all("input, select, button").filter((e) => !label(e))),
    "descriptions that are not there": all("[aria-describedby], [aria-labelledby]").flatMap((e) => (e.getAttribute("aria-describedby") ?? e.getAttribute("aria-labelledby")).split(" ")).filter((id) => !document.getElementById(id)),
    "tables without a caption": names(all("table").filter((e) => !e.caption?.textContent)),
    "heads of tables without a scope": names(all("th:not([scope])")),
    "pictures without a name": names(all("svg").filter((e) => !e.closest("[aria-hidden]") && !e.getAttribute("aria-labelledby"))),
    "boxes that scroll and no key reaches": names(all(".scroll").filter((e) => e.tabIndex < 0)),
    "levels of headings that are left out": all("h1, h2, h3").map((e) => Number(e.tagName[1])).filter((level, i, every) => level > (every[i - 1] ?? 0) + 1),
    "more or less than one": ["h1", "main", "html[lang]", "head > title", ".skip"].filter((selector) => all(selector).length !== 1),
    "errors of the calculator": all(".error").map((e) => e.textContent).filter(Boolean),
  };
}"""


CUT = """() => {
  // texts that a box or the page cuts at a side, and numbers of equations that stand on their formula
  const found = new Set(), say = (what, e) => found.add(`${what}: ${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 40)}`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !e.checkVisibility() || e.closest(".visually-hidden, .skip, .katex-mathml, script, option, svg, .filters legend, thead")) continue;
    let left = -scrollX, right = document.documentElement.clientWidth - scrollX;
    for (let box = e; box && box !== document.body; box = box.parentElement) {
      const style = getComputedStyle(box), rect = box.getBoundingClientRect();
      if (style.overflowX !== "visible" && style.display !== "inline") { left = Math.max(left, rect.left); right = Math.min(right, rect.right); }
    }
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) if (rect.width >= 1 && rect.height >= 1 && (rect.left < left - 1.5 || rect.right > right + 1.5)) say("cut", e);
  }
  for (const number of document.querySelectorAll(".formula .number")) {
    const own = number.getBoundingClientRect();
    for (const base of number.parentElement.querySelectorAll(".katex-base")) {
      const rect = base.getBoundingClientRect();
      if (rect.right > own.left && rect.left < own.right && rect.bottom > own.top && rect.top < own.bottom) say("on its formula", number);
    }
  }
  return [...found].slice(0, 9);
}"""

INTERNAL = r"\b(?:Excess|Given|FloorDiv|CeilDiv|Least|Most|AtLeast|Equal|Contains|Item|Each|Occurrences|Total|Tally|Modulo|Together|Longest|Sym|Num|Prod)\(|_modulo|_over_|\bat_least\b|-\)|\bNone\b"
"""Names of our own functions and data, which no page says."""

LEAKED = """(pattern) => {
  const known = new RegExp(pattern), found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) if (!node.parentElement.closest("script, style, .katex-mathml") && known.test(node.textContent)) found.push(node.textContent.slice(0, 90));
  return found;
}"""


@pytest.mark.parametrize("name", some(MODELS, rest="nightly"))
def test_every_page_is_sound(name: str, site: Site, watched: Watched) -> None:
    page = watched.open(site.address(name))
    wrong = {what: found for what, found in page.evaluate(SOUND).items() if found}
    assert not wrong and not watched.problems, (wrong, watched.problems)
    assert page.locator("#out-parameters").get_attribute("data-exact").isdecimal()
    assert page.locator("#by-part tr").count() >= 1 or page.locator("#passes tbody tr").count() == 0
    assert page.evaluate(LEAKED, INTERNAL) == []
    assert page.evaluate(CUT) == []
    page.set_viewport_size({"width": 375, "height": 800})
    page.wait_for_timeout(300)  # formulas are set anew a moment after the width changes
    assert page.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth]") == [375, 375]
    assert page.evaluate(CUT) == []
    for link in page.locator("a[href]").evaluate_all("found => found.map((a) => a.getAttribute('href'))"):
        if not link.startswith(("#", "http")):
            assert (Path(unquote(page.url.removeprefix("file://"))).parent / link).is_file(), link


def test_the_zoo_is_whole_and_its_scripts_are_small(site: Site) -> None:
    assert len(list(site.folder.glob("*/*.html"))) == len(MODELS) > 120
    assert all(path.stat().st_size <= 300_000 for path in site.folder.glob("*/*.js") if path.parent.name != "assets")


def test_a_second_run_derives_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", "-o", str(site.folder)]) == 0
    assert f" 0 derived, {len(MODELS)} unchanged, 0 files written" in capsys.readouterr().err


# the calculator

PRESETS = ("llama", "qwen_image", "wan", "deepseek_v2", "whisper", "unet_2d_condition", "sd3", "swin", "t5")


def exact(page: Page) -> dict[str, int]:
    """What the calculator shows, once it has taken in what was typed last."""
    names = ("parameters", "forward", "backward", "recomputed", "total")
    return {name: int(page.locator(f"#out-{name}").get_attribute("data-exact")) for name in names}


def settle(page: Page) -> None:
    page.wait_for_function("() => !document.querySelector('.stale') && document.getElementById('calculator-form').dataset.turn")
    page.evaluate("() => new Promise((done) => setTimeout(done, 30))")


def written(given: Any) -> str:
    """A batch as a person types it."""
    if not isinstance(given, list):
        return str(given)
    return ", ".join("x".join(map(str, entry)) if isinstance(entry, list) else str(entry) for entry in given)


@pytest.mark.parametrize("name", PRESETS)
def test_the_calculator_gives_the_integers_of_the_python_estimator(name: str, site: Site, watched: Watched) -> None:
    page, draw, group = watched.open(site.address(name)), random.Random(name), find_spec(name).group
    models = {item.name: item for item in published(find_spec(name))}
    offered = [(number, models[preset["record"]]) for number, preset in enumerate(data(page)["presets"]) if preset["record"] in models]
    assert offered or name == "sd3"
    for number, item in offered:
        page.select_option("#preset", str(number))
        regime, convention = (draw.choice(page.locator(f"#{id} option").evaluate_all("o => o.map((e) => e.value)")) for id in ("regime", "convention"))
        page.select_option("#regime", regime)
        page.select_option("#convention", convention)
        batches = [dict(item.batch)]
        for _ in range(2):
            items = draw.randint(1, 5)
            batches.append({stream: items if isinstance(given, int) else ragged(given, items, draw) for stream, given in item.batch.items()})
        one = structure(group, name, item.config)(regime, convention)
        for place, batch in enumerate(batches):
            try:
                m = one.moments(**batch)
            except ValueError:  # lengths that the class does not take
                assert place > 0
                continue
            for stream, given in batch.items():
                page.fill(f"#stream-{stream}", written(given))
            settle(page)
            expected = [one.parameters, one.forward(m), one.backward(m), one.recomputed(m), one.total(m)]
            assert list(exact(page).values()) == expected, (item.name, batch)
            rows = page.locator("#by-module tr").evaluate_all("rows => rows.map((r) => [...r.children].map((c) => c.textContent))")
            shown = {row[0]: [int(cell.replace(",", "")) for cell in row[1:4]] for row in rows}
            assert shown == {module: [f.forward, f.backward, f.recomputed] for module, f in one.by_module(m).items()}
            # a page has one row per regime and convention, of which the chosen one is the calculation
            chosen = page.locator("#by-regime tr.chosen td").evaluate_all("cells => cells.map((c) => c.textContent.replaceAll(',', ''))")
            assert chosen[1:5] == [str(one.trainable_parameters), *map(str, expected[1:4])]
            tokens = one.tokens(m) if hasattr(one, "tokens") else None
            assert tokens is None or int(page.locator("#out-token").get_attribute("data-exact")) == (2 * expected[4] + tokens) // (2 * tokens)
    assert not watched.problems


def ragged(given: list[Any], items: int, draw: random.Random) -> list[Any]:
    """As many entries as asked for, each a multiple of the first one's lengths, or half of them where they are many."""
    first = given[0]
    return [[draw.randint(1, 3) * part for part in first] if isinstance(first, list) else draw.randint(0, 2 * first) for _ in range(items)]


def data(page: Page) -> dict[str, Any]:
    """The data of a page's script."""
    found: dict[str, Any] = json.loads(page.locator("#model").text_content())
    return found


def structure(group: str, name: str, config: Any) -> Any:
    """The generated estimator of the structure that a config is of."""
    stems = [name, *(f"{name}_{variant}" for variant in ("sd15", "sd21", "sdxl", "small"))]

    def made(regime: str, convention: str) -> Any:
        for stem in stems:
            try:
                module = importlib.import_module(f"symflops.generated.{group}.{stem}")
                return module.Estimator(module.Sizes.from_config(config), regime=regime, convention=convention)
            except (ModuleNotFoundError, ValueError):
                continue
        raise AssertionError(f"no module of {name} for {config}")

    return made


def test_a_calculation_is_shared_by_its_address(site: Site, watched: Watched) -> None:
    page = watched.open(site.address("llama"))
    page.fill("#stream-text", "4096, 17*3")
    for field, text in (("seconds", "2.5"), ("devices", "8"), ("peak", "H100 SXM")):
        page.fill(f"#{field}", text)
    page.fill("#size-num_hidden_layers", "5")
    page.check("#size-tie_word_embeddings")
    page.select_option("#regime", "lora")
    page.select_option("#convention", "torch")
    settle(page)
    first, address = exact(page), page.url
    assert "?" in address
    watched.page.goto("about:blank")
    again = watched.open(address)
    assert exact(again) == first
    assert again.input_value("#stream-text") == "4096, 17*3"
    assert [again.input_value(f"#{field}") for field in ("seconds", "devices", "peak")] == ["2.5", "8", "H100 SXM"]
    assert again.is_checked("#size-tie_word_embeddings")
    again.click("#reset")
    settle(again)
    assert "?" not in again.url
    assert exact(again) != first
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.fill("#stream-text", "99")
    settle(page)
    page.click("#share")
    expect(page.locator("#shared")).to_contain_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


@pytest.mark.parametrize(
    ("name", "field", "text", "told"),
    [
        ("llama", "stream-text", "12, a", "'a' is no length"),
        ("llama", "stream-text", "12,", "'' is no length"),
        ("llama", "stream-text", "3x4", "1 number"),
        ("llama", "stream-text", "1*9999999", "no length"),
        ("llama", "size-num_hidden_layers", "200000", "at most 100,000"),
        ("llama", "size-num_hidden_layers", "-1", "whole number"),
        ("llama", "size-hidden_size", "4e3", "whole number"),
        ("llama", "size-num_attention_heads", "0", "ivision"),
        ("swin", "size-depths", "[2, 2", "a list"),
        ("wan", "stream-latent", "21x60", "3 numbers"),
        ("qwen2_vl", "stream-images", "1x3x5", "does not divide"),
    ],
)
def test_bad_input_is_told_beside_its_field(name: str, field: str, text: str, told: str, site: Site, watched: Watched) -> None:
    page = watched.open(site.address(name))
    before = exact(page)
    page.fill(f"#{field}", text)
    wrong = page.locator(".error:not(:empty)")
    expect(wrong).to_have_count(1)
    assert told in wrong.text_content()
    if told not in ("ivision", "does not divide"):
        expect(page.locator(f"#{field}")).to_have_attribute("aria-invalid", "true")
        expect(page.locator(f"#{field}-error")).to_contain_text(told)
    page.click("#reset")
    settle(page)
    expect(wrong).to_have_count(0)
    assert exact(page) == before
    assert not watched.problems


def test_the_crossover_is_where_attention_does_half_of_the_work(site: Site, watched: Watched) -> None:
    from symflops.generated.language.llama import Estimator, Sizes

    page = watched.open(site.address("llama"))
    found = int(page.locator("#plot-box").get_attribute("data-cross"))
    one = Estimator(Sizes())

    def attention(length: int) -> bool:
        modules = one.by_module(one.moments(text=[length]))
        return 2 * modules["model.layers.*.self_attn"].total >= sum(flops.total for flops in modules.values())

    assert attention(found) and not attention(found - 1)
    page.fill("#size-num_hidden_layers", "1")
    settle(page)
    assert int(page.locator("#plot-box").get_attribute("data-cross")) > found  # the head weighs more
    for scale in ("flops", "share"):
        page.select_option("#scale", scale)
        assert page.locator("#plot-box path.area").count() >= 2
    assert not watched.problems


@pytest.mark.parametrize("name", ["llama", "deepseek_v3", "unet_2d_condition"])
def test_anchors_land_below_the_bar(name: str, site: Site, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = Watched(context.new_page()).open(site.address(name))
    anchors = page.locator(".contents a").evaluate_all("found => found.map((a) => a.hash)")
    landed = """(hash) => {
      const target = document.querySelector(hash), seen = target.querySelector("h2") ?? target;
      return seen.getBoundingClientRect().top - document.querySelector(".bar").getBoundingClientRect().bottom;
    }"""
    there = f"(hash) => {{ const top = ({landed})(hash); return -1 <= top && top <= 40 && hash; }}"
    for anchor in anchors[:-3:3]:
        page.evaluate("(hash) => { location.hash = hash; }", anchor)
        page.wait_for_function(there, arg=anchor, timeout=20_000)
    again = Watched(context.new_page()).open(f"{site.address(name)}#forms")
    again.wait_for_function(there, arg="#forms", timeout=20_000)
    context.close()


def test_every_figure_leads_to_its_formula_and_a_published_model_to_its_record(site: Site, watched: Watched) -> None:
    page = watched.open(site.address("llama"))
    expect(page.locator("#proof a")).to_have_attribute("href", "#verified")
    number = next(number for number, preset in enumerate(data(page)["presets"]) if preset["record"] == "pub-llama3-8b")
    page.select_option("#preset", str(number))
    settle(page)
    expect(page.locator("#preset-source")).to_contain_text("pub-llama3-8b")
    expect(page.locator("#proof")).to_contain_text("0 FLOPs apart")
    record = page.locator(f"#{page.locator('#proof a').get_attribute('href')[1:]}")
    expect(record).to_contain_text("8,030,261,248")
    for regime, convention in (("full", "symflops"), ("full", "torch"), ("forward", "torch")):
        page.select_option("#regime", regime)
        page.select_option("#convention", convention)
        settle(page)
        equation = page.locator("#of-forward").get_attribute("href")
        assert equation.startswith("#eq-")
        assert "forward" in page.locator(f"{equation} .katex-mathml").first.text_content()
    for name in page.locator(".facts dt").all():
        address = name.locator("a").get_attribute("href")
        assert page.locator(f'[id="{address[1:]}"]').count() == 1, name.text_content()
    page.click("#modules-of-batch summary")
    for row in page.locator("#by-module tr a").all()[::3]:
        assert row.text_content().rpartition(".")[2] in page.locator(row.get_attribute("href")).text_content()
    assert not watched.problems


def test_checkpoints_name_their_source_and_have_their_parameters(site: Site, watched: Watched) -> None:
    for name, label, parameters in (("llama", "llama-3.1-405b", 405_853_388_800), ("deepseek_v3", "deepseek-v3", 671_026_404_352)):
        page = watched.open(site.address(name))
        page.select_option("#preset", label=label)
        settle(page)
        assert exact(page)["parameters"] == parameters
        expect(page.locator("#preset-source")).to_contain_text("config.json in ai-dynamo/aiconfigurator")


def test_utilisation_takes_seconds_devices_and_a_device_by_name(site: Site, watched: Watched) -> None:
    from symflops.training.devices.peaks import peak

    page = watched.open(site.address("llama"))
    page.fill("#seconds", "2")
    page.fill("#devices", "8")
    page.fill("#peak", "H100 SXM")
    settle(page)
    rate = peak("H100 SXM").tflops
    expect(page.locator("#out-mfu")).to_have_text(f"{100 * exact(page)['total'] / 2 / 8 / (rate * 1e12):.2f} %")
    page.fill("#peak", "989")
    expect(page.locator("#out-mfu")).to_have_text(f"{100 * exact(page)['total'] / 2 / 8 / 989e12:.2f} %")
    for field, text, told in (("peak", "h100", "H100 SXM"), ("peak", "toaster", "no device"), ("seconds", "-1", "above 0"), ("devices", "1.5", "whole number")):
        page.fill("#peak", "H100 SXM")
        page.fill(f"#{field}", text)
        settle(page)
        expect(page.locator(f"#{field}-error")).to_contain_text(told)
        page.click("#reset")
        settle(page)
        page.fill("#seconds", "2")
    assert not watched.problems


PUBLISHED = Path(__file__).parents[1] / "data/published_configs/reconstructed"
READ = """([config, reading]) => {
  const model = JSON.parse(document.getElementById("model").textContent), text = (_, value) => typeof value === "bigint" ? String(value) : value;
  try {
    const read = symflopsReading.read(model, config);
    for (const [key] of model.estimators) {
      const found = symflops[key]?.sizes(read);
      if (!found || !symflops[key].fits(found)) continue;
      symflops[key].check(found);
      return JSON.parse(JSON.stringify(found, text));
    }
    return "another structure";
  } catch (error) { return {refused: error.message}; }
}"""


def changes(config: dict[str, Any], draw: random.Random) -> Iterator[dict[str, Any]]:
    """A config, and configs with one field that is gone, null, or of another kind."""
    yield config
    for key in draw.sample(sorted(config), min(8, len(config))):
        yield {name: value for name, value in config.items() if name != key}
        yield {**config, key: None}
        yield {**config, key: draw.choice(("word", 7, [1, 2], True, 2.5, {"a": 1}))}


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.json"))[::4], ids=lambda path: path.stem)
def test_a_pasted_config_is_read_as_python_reads_it(path: Path, site: Site, watched: Watched) -> None:
    from symflops.evaluate.classes import check_class
    from symflops.evaluate.sizes import MissingSize, check_fit, sizes_of
    from symflops.evaluate.stored import Stored
    from symflops.library.lookup import by_config
    from symflops.support.errors import SymflopsError

    given = json.loads(path.read_text("utf-8"))
    catalog, name = by_config(given)
    program, entry = Stored(catalog.program(name)), catalog.specs[name]
    page = watched.open(site.address(name))
    agreed = 0
    for config in changes(given, random.Random(path.stem)):
        found = page.evaluate(READ, [config, None])
        try:
            check_class(name, entry["references"], entry["model_types"], config)
            sizes = sizes_of(program, config)
            check_fit(program, sizes)
        except SymflopsError as error:
            assert "refused" in found, (config, str(error), found)
            continue
        expected = {field["attribute"]: sizes[field["letter"]] for field in program.document["fields"]}
        rational = [field["attribute"] for field in program.document["fields"] if field["kind"] == "rational"]
        expected |= {name: Fraction(expected[name]) for name in rational if expected[name] is not None}
        if found == "another structure" or any(isinstance(value, MissingSize) for value in expected.values()):
            continue
        assert "refused" not in found, (found, config)
        assert {name: written_size(value) for name, value in expected.items()} == {name: written_size(value) for name, value in found.items()}
        agreed += 1
    assert agreed or entry.get("structures")


def written_size(value: Any) -> str:
    """A size as text, with whole numbers as JavaScript writes them."""
    if isinstance(value, Fraction):
        return written_size([value.numerator, value.denominator])
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(written_size, value))}]"
    return str(int(value)) if isinstance(value, bool) else str(value)


def test_a_pasted_config_fills_the_form_or_says_what_is_missing(site: Site, watched: Watched) -> None:
    page = watched.open(site.address("llama"))
    page.click("#paste summary")
    page.fill("#config", (PUBLISHED / "llama-3.1-405b.json").read_text("utf-8"))
    settle(page)
    assert exact(page)["parameters"] == 405_853_388_800
    expect(page.locator("#config-told")).to_contain_text("sizes read")
    for text, told in (("{", "not JSON"), ('{"architectures": ["GPT2LMHeadModel"]}', "GPT2LMHeadModel"), ('{"hidden_size": null}', "null"),
                       ('{"hidden_act": "tangle"}', "tangle"), ('{"num_hidden_layers": "many"}', "num_hidden_layers"),
                       ('{"num_key_value_heads": 5}', "do not divide")):  # fmt: skip
        page.fill("#config", text)
        expect(page.locator("#config-error")).to_contain_text(told)
    page = watched.open(site.address("linear"))
    page.click("#paste summary")
    page.fill("#config", "{}")
    expect(page.locator("#config-error")).to_contain_text("the config has no")


def test_a_calculation_is_copied_as_python_and_as_latex(site: Site, watched: Watched) -> None:
    page = watched.open(site.address("llama"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.fill("#stream-text", "64, 32*2")
    page.fill("#size-num_hidden_layers", "2")
    page.check("#size-tie_word_embeddings")
    settle(page)
    page.click("#copy-python")
    expect(page.locator("#shared")).to_contain_text("Python")
    done = subprocess.run([sys.executable, "-c", page.evaluate("navigator.clipboard.readText()")], capture_output=True, text=True, check=True)
    figures = exact(page)
    assert done.stdout.split() == [str(figures[name]) for name in ("parameters", "forward", "backward")]
    page.click("#copy-latex")
    expect(page.locator("#shared")).to_contain_text("LaTeX")
    text = page.evaluate("navigator.clipboard.readText()")
    assert r"\mathrm{forward} ={}&" in text and f"{figures['forward']:,}".replace(",", "{,}") in text
    assert text.count(r"\begin{align*}") == text.count(r"\end{align*}") == 1 and page.url in text


def test_a_wide_picture_shows_levels_that_open(site: Site, watched: Watched) -> None:
    page = watched.open(site.address("unet_2d_condition"))
    boxes = page.locator("#graph > .drawing [data-opens]")
    assert {"open down_blocks.0", "open mid_block", "open up_blocks.3"} <= set(boxes.evaluate_all("found => found.map((e) => e.getAttribute('aria-label'))"))
    level = page.locator("#graph details.level").first
    expect(level).not_to_have_attribute("open", "")
    page.locator(f'[data-opens="{level.get_attribute("id")}"]').click()
    expect(level).to_have_attribute("open", "")
    page.locator(f'[data-opens="{level.get_attribute("id")}"]').press("Enter")
    expect(level).not_to_have_attribute("open", "")
    assert not watched.problems


# people

def test_keys_reach_everything_and_nothing_holds_them(site: Site, watched: Watched) -> None:
    page = watched.open(site.address("qwen_image"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    box = page.locator(".skip").bounding_box()
    assert box["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    reached = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        where = page.evaluate("() => { const e = document.activeElement; return e === document.body ? '' : e.id || e.className || e.textContent.trim(); }")
        if not where:
            break
        reached.add(where)
        if where not in ("KaTeX", "All models"):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", where
    assert {"preset", "regime", "convention", "stream-latent", "stream-prompt", "share", "reset", "axis", "scale", "KaTeX"} <= reached
    page.focus("#theme")
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("Space")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(theme: str, site: Site, browser: Browser) -> None:
    context = browser.new_context(color_scheme=theme, reduced_motion="reduce")
    watched = Watched(context.new_page())
    page = watched.open(site.address("llama"))
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((n) => n < 80)")
    assert dark is (theme == "dark")
    assert page.evaluate(CONTRAST) == []
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((n) => n < 80)") is not dark
    assert page.evaluate(CONTRAST) == []
    for _ in range(20):  # the choice is kept, though a busy browser may lose what a page stores, and hands it on a little later
        page = watched.open(site.address("qwen_image"))
        kept = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((n) => n < 80)") is not dark
        if kept:
            break
        page.click("#theme")
        page.wait_for_timeout(250)
    assert kept
    context.close()


CONTRAST = """() => {
  const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (text) => { paint.clearRect(0, 0, 1, 1); paint.fillStyle = text; paint.fillRect(0, 0, 1, 1); return paint.getImageData(0, 0, 1, 1).data; };
  const light = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const under = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 200) return c; } return [255, 255, 255]; };
  const poor = new Set();
  for (const e of document.querySelectorAll("p, li, dt, dd, th, td, a, label, legend, small, h1, h2, h3, button, summary, caption, output, .hint")) {
    if (!e.textContent.trim() || !e.checkVisibility() || e.closest(".bar, .skip, .katex")) continue;
    const [one, two] = [light(rgb(getComputedStyle(e).color)), light(under(e))].sort((a, b) => b - a);
    if ((one + 0.05) / (two + 0.05) < 4.5) poor.add(`${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 30)}`);
  }
  return [...poor];
}"""


def test_a_page_prints(site: Site, watched: Watched, tmp_path: Path) -> None:
    page = watched.open(site.address("qwen_image"))
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in (".bar", ".contents", ".buttons"):
        expect(page.locator(hidden)).to_be_hidden()
    page.pdf(path=tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 50_000


def test_without_scripts_a_page_is_text(site: Site, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.address("llama"))
    expect(page.locator("#result")).to_contain_text("2 L H d")
    expect(page.locator("#calculator-form")).to_be_hidden()
    expect(page.locator(".no-js")).to_be_visible()
    context.close()


# the index

def shown(page: Page) -> list[str]:
    return page.locator("#models tbody tr:visible th a").all_text_contents()


def test_the_index_finds_models(site: Site, watched: Watched) -> None:
    page = watched.open((site.folder / "index.html").as_uri())
    wrong = {what: found for what, found in page.evaluate(SOUND).items() if found}
    assert not wrong, wrong
    links = page.locator("#models a").evaluate_all("found => found.map((a) => a.getAttribute('href'))")
    assert len(links) == len(set(links)) == len(MODELS)
    assert all((site.folder / link).is_file() for link in links)
    page.keyboard.press("/")
    page.keyboard.type("FluxTransformer2DModel")
    assert len(shown(page)) == 1
    expect(page.locator("#found")).to_contain_text(f"1 of {len(MODELS)}")
    page.fill("#search", "qwen")
    many = len(shown(page))
    page.check('input[name="family"][value="diffusion"]', force=True)
    assert 0 < len(shown(page)) < many
    again = watched.open(page.url)
    assert again.input_value("#search") == "qwen"
    assert len(shown(again)) < many
    again.fill("#search", "no such model")
    assert shown(again) == []
    again.fill("#search", "qwen_image")
    again.press("#search", "Enter")
    again.wait_for_url(re.compile("/diffusion/.*qwen_image.*html"))
    page.set_viewport_size({"width": 375, "height": 800})
    watched.open((site.folder / "index.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    assert page.evaluate(CUT) == []
    assert not watched.problems


def test_the_index_sorts_by_each_column(site: Site, watched: Watched) -> None:
    page = watched.open((site.folder / "index.html").as_uri())
    assert page.evaluate(CUT) == []
    heads = page.locator("#models thead th").all()
    for place, head in enumerate(heads):
        for _ in range(2):
            head.locator("button").click()
            number, down = head.get_attribute("data-kind") == "number", head.get_attribute("aria-sort") == "descending"
            cells = page.locator(f"#models tbody tr > :nth-child({place + 1})").evaluate_all("cells => cells.map((c) => c.dataset.value ?? c.textContent.trim())")
            if number:
                assert len([cell for cell in cells if cell]) > 60
                found = [int(cell) for cell in cells if cell]
                assert found == sorted(found, reverse=down) and cells[len(found):] == [""] * (len(cells) - len(found))
            else:
                assert sorted(cells, key=str.lower)[0 if not down else -1].lower() == cells[0].lower()
    again = watched.open(page.url)
    assert again.locator("#models thead th").last.get_attribute("aria-sort")
    assert not watched.problems


# one file

def test_one_file_is_a_whole_page(tmp_path: Path, watched: Watched) -> None:
    assert main(["render", "unet_2d_condition", "--format", "html", "-o", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["unet_2d_condition.html"]
    page = watched.open((tmp_path / "unet_2d_condition.html").as_uri())
    assert not {what: found for what, found in page.evaluate(SOUND).items() if found}
    assert not watched.problems
    assert page.evaluate("document.fonts.ready.then(() => [...document.fonts].some((font) => font.status === 'loaded' && font.family.includes('KaTeX')))")
    sdxl = next(number for number, preset in enumerate(data(page)["presets"]) if "sdxl" in preset["record"])
    page.select_option("#preset", str(sdxl))
    settle(page)
    assert exact(page)["parameters"] == 2_567_463_684


def test_data_of_a_page_is_carried_whole(site: Site) -> None:
    for path in sorted(site.folder.glob("*/*.html")):
        text = path.read_text("utf-8").partition('id="model">')[2].partition("</script>")[0]
        data = json.loads(text)
        assert data["presets"] or data["name"], path
        assert all((path.parent / script).is_file() for _, script in data["estimators"])
