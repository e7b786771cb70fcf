"""What the terminal shows: lines that fit, colours, hidden rows, JSON, and how little is imported for it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from symflops.analysis.convention_comparison import by_convention, by_regime, regimes_in
from symflops.analysis.explanation import Explanation, default_batch
from symflops.cli import compare, progress, terminal
from symflops.cli.main import main
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.python.rows import RowPrinter
from symflops.formula.formula import formulas_of
from symflops.library.catalog import PACKAGE
from symflops.library.lookup import by_name, catalogs, interpreter
from tests.sampling import sampled
from tests.shipped import FILES, NAMES, cases_of, load

ROOT = Path(PACKAGE).parent
BATCH = '{"text": [64]}'
STRUCTURES = [(name, variant) for catalog in catalogs() for name, entry in catalog.specs.items() for variant in ("", *entry.get("structures", {})) if variant != "default"]


def config_of(name: str) -> dict:
    """The defaults of a spec, or the config of its first case."""
    required = any(row.get("required") for row in by_name(name).program(name)["fields"])
    return {**cases_of(FILES[name])[0].config} if required else {}


@pytest.fixture
def run(capsys):
    def call(*words: str) -> str:
        assert main(words) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize(("name", "columns"), [*sampled([(name, 80) for name in NAMES], 24, 6), *sampled([(name, 200) for name in NAMES], 60, 20)])
def test_every_line_fits_and_nothing_is_lost_where_there_is_room(name, columns, run, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", str(columns))
    (tmp_path / "config.json").write_text(json.dumps(config_of(name)))
    own = ("--config", str(tmp_path / "config.json"))
    stored = by_name(name).program(name)
    regimes = [row["name"] for row in stored["regimes"]]
    texts = [run("explain", name, *own, "--all", "--depth", "99"), run("explain", name, *own, "--top", "30")]
    texts.append(run("compare", name, *own, "--regimes", ";".join(regimes)))
    models = {one: interpreter(name, config_of(name), "full", one) for one in stored["conventions"]}
    texts.append("\n".join(compare.convention_table(name, "full", by_convention(models, default_batch(models["symflops"])))))
    for text in texts:
        assert max(map(len, text.splitlines())) <= columns
        assert columns == 80 or "…" not in text
    modules = [row["module"].rpartition(".")[2] for row in Explanation(models["symflops"]).rows]
    assert columns == 80 or all(module in texts[0] for module in modules)


@pytest.mark.parametrize("name", sampled(["llama", "deepseek_v3", "qwen_image"], 3, 1))
def test_causes_of_differences_fit(name, run, monkeypatch):
    for columns in (80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        told = run("compare", name, "--conventions", "symflops,torch,verl")
        assert max(map(len, told.splitlines())) <= columns and "torch - symflops = " in told


def test_the_columns_of_numbers_end_where_their_headings_do(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words, last in ((("explain", "deepseek_v3"), "share"), (("compare", "llama"), "of 3 fwd")):
        lines = run(*words).splitlines()
        first = next(place for place, line in enumerate(lines) if line.endswith(last))
        heading = lines[first]
        rows = lines[first + 1 :][: 8 if words[0] == "explain" else 3]
        ends = [heading.index(word) + len(word) for word in ("forward", "backward", last)]
        for row in rows:
            assert all(row[end - 1] != " " and row[end : end + 1].strip() == "" for end in ends), row


def test_a_text_is_wrapped_without_losing_anything():
    texts = ["a" * 300, "2*(L*(D*(2*d*(H + G) + 3*F) + H*d) + D*V)" * 9, "x**2" * 80, "one two three " * 30, "", "lora:r=16,targets=*.q|*.v" * 8]
    for text in texts:
        for most in (30, 40, 80):
            for first, rest in (("", ""), ("  forward    = ", " " * 7), ("    ", "  ")):
                lines = terminal.wrapped(text, most, first, rest)
                assert all(len(line) <= most for line in lines), (text, most)
                told = "".join([lines[0].removeprefix(first.rstrip()), *(line.removeprefix(rest) for line in lines[1:])])
                assert told.replace(" ", "") == text.replace(" ", "")


def test_a_long_name_keeps_both_ends():
    assert terminal.fitted("transformer_blocks", 9) == "tran…ocks" and terminal.fitted("abc", 3) == "abc"
    rows = [("name", "n"), ("a" * 90, "1"), ("b", "1,000")]
    lines = terminal.columns(rows, 30)
    assert all(len(line) <= 30 for line in lines) and lines[1].startswith("aaaa") and "…" in lines[1]
    assert [line[-1] for line in lines] == ["n", "1", "0"]


@pytest.mark.parametrize(("variables", "tty", "coloured"), [({}, True, True), ({}, False, False), ({"NO_COLOR": "1"}, True, False), ({"TERM": "dumb"}, True, False)])
def test_colour_is_for_terminals_whose_user_wants_it(variables, tty, coloured, run, monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: tty)
    for words in (("explain", "llama"), ("compare", "llama")):
        assert ("\033[" in run(*words)) == coloured


@pytest.mark.parametrize("name", sampled(NAMES, 4, 1))
def test_rows_without_work_are_hidden_unless_all_are_wanted(name):
    told = Explanation(interpreter(name, config_of(name)))
    idle = {row["module"] for row in told.rows if not row["total"]}
    selected_rows = {row["module"] for row in _shown(told)}
    assert not idle & selected_rows - {"total"} and {row["module"] for row in _shown(told, all=True)} == {row["module"] for row in told.rows}
    top = told.top(3)
    assert top[0]["module"] == "total" and len(top) <= 4
    amounts = [row["total"] for row in top[1:]]
    assert amounts == sorted(amounts, reverse=True) and sum(row["total"] for row in told.top(10**6)[1:]) == top[0]["total"]


def _shown(told: Explanation, **more: bool) -> list[dict]:
    from argparse import Namespace

    from symflops.cli.explain import selected_rows

    return selected_rows(told, Namespace(**{"top": None, "all": False, "depth": 99} | more))


def test_a_note_says_that_rows_are_hidden(run):
    hidden, everything = run("explain", "llama"), run("explain", "llama", "--all")
    assert "--all shows" in hidden and "embed_tokens" not in hidden
    assert "--all shows" not in everything and "embed_tokens" in everything
    assert len(run("explain", "llama", "--top", "2").splitlines()) < len(hidden.splitlines())


@pytest.mark.parametrize("words", [("--depth", "-1"), ("--top", "-1")])
def test_a_negative_number_is_refused(words, capsys):
    assert main(["explain", "llama", *words]) == 2
    assert f"{words[0]} is -1" in capsys.readouterr().err


@pytest.mark.parametrize("name", sampled(NAMES, 24, 12))
def test_the_json_of_explain_adds_up(name, run, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config_of(name)))
    words = ("explain", name, "--config", str(tmp_path / "config.json"), "--json")
    found = json.loads(run(*words))
    rows = found["modules"]
    assert found["schema"] == 1 and rows[0]["module"] == "total" and rows[0]["total"] == found["total"]
    assert rows[0]["parameters"] == found["parameters"]
    leaves = [row for row, after in zip(rows, [*rows[1:], rows[0]], strict=True) if after["depth"] <= row["depth"]]
    assert sum(row["total"] for row in leaves) <= found["total"]
    assert set(found["closed_form"]) == {"forward", "backward", "recomputed"}
    assert found["symbols"] or not any(found["closed_form"].values())
    assert len(json.loads(run(*words, "--top", "1"))["modules"]) <= 2


@pytest.mark.parametrize(("name", "variant"), sampled(STRUCTURES, 4, 1))
def test_formulas_of_stored_programs_are_printed_as_those_in_memory(name, variant):
    rows = by_name(name).program(name, variant)["formulas"]
    python, printed = PythonPrinter(), RowPrinter(rows)
    alone = [place for place, row in enumerate(rows) if not (isinstance(row, list) and row[0] == "?given" and not isinstance(rows[row[1]], str))]
    formulas = formulas_of(rows)
    assert len(alone) > 5 and all(printed.text(place) == python.text(formulas[place]) for place in alone)


def test_explain_tells_the_closed_form_of_a_derivation():
    for name in ("llama", "qwen_image", "deepseek_v3", "unet_2d_condition"):
        derived = load(name).derive(config={})
        told = Explanation(interpreter(name, {})).closed_form
        assert (told["forward"], told["backward"]) == (derived.forward, derived.backward)


HEAVY = ("sympy", "networkx", "jinja2", "rich", "ruamel.yaml", "numpy", "torch", "dataclasses", "shutil", "inspect", "pathlib")


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "llama"), ("explain", "unet_2d_condition", "--top", "9"), ("explain", "qwen3_next", "--json"), ("compare", "llama"),
        ("explain", "llama", "--convention", "megatron", "--regime", "lora"), ("compare", "llama", "--conventions", "megatron"), ("explain", "swin/tiny", "--symbolic"),
        ("explain", "sdxl", "--symbolic"),
        ("compare", "deepseek_v3", "--conventions", "symflops,verl,torch", "--table"),
    ],
)  # fmt: skip
def test_stored_programs_answer_without_heavy_imports(words):
    text = f"import sys\nfrom symflops.cli.main import main\ncode = main({list(words)})\nprint([name for name in {HEAVY} if name in sys.modules], code)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[] 0", done.stdout[-300:] + done.stderr


def test_the_form_of_one_config_needs_no_sympy(tmp_path):
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 3, "model_type": "llama"}')
    own = ["--config", str(tmp_path)]
    for words in (["explain", *own], ["explain", *own, "--numeric"], ["explain", *own, "--json"], ["explain", "swin/tiny", "--numeric"], ["explain", "sdxl"]):
        text = f"import sys\nfrom symflops.cli.main import main\ncode = main({words})\nprint([name for name in {HEAVY[:7]} if name in sys.modules], code)"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
        assert done.stdout.splitlines()[-1] == "[] 0", done.stdout[-300:] + done.stderr


def test_what_is_known_is_folded(run, tmp_path):
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 3, "model_type": "llama"}')
    found = json.loads(run("explain", "--config", str(tmp_path), "--json"))
    assert found["folded"] and all("biased" not in form for form in found["closed_form"]["forward"].values())
    assert {row["letter"]: row.get("value") for row in found["symbols"]}["L"] == "3"
    derived = load("llama").derive(config={}).at(assume="num_hidden_layers=3")
    told = json.loads(run("explain", "llama", "--assume", "num_hidden_layers=3", "--json"))["closed_form"]
    assert (told["forward"], told["backward"]) == (derived.forward, derived.backward)
    assert json.loads(run("explain", "llama", "--json"))["folded"] == []


def test_a_table_of_conventions_alone(run):
    words = ("compare", "llama", "--conventions", "symflops,torch", "--batch", BATCH)
    table, whole = run(*words, "--table"), run(*words)
    assert whole.startswith(table) and "torch - symflops" in whole and "torch - symflops" not in table
    one, two = (json.loads(run(*words, *more, "--json")) for more in (("--table",), ()))
    assert one.items() <= two.items() and "differences" not in one


def test_explaining_imports_little_more_than_estimating():
    def modules(*words: str) -> int:
        text = f"import sys\nfrom symflops.cli.main import main\nmain({list(words)})\nprint(len(sys.modules))"
        return int(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT).stdout.splitlines()[-1])

    estimate = modules("estimate", "llama", "--batch", BATCH)
    assert modules("explain", "llama") <= estimate + 10 and modules("compare", "llama") <= estimate + 10


def test_regimes_are_split_at_commas_that_no_regime_has():
    assert regimes_in("full,lora:r=16,targets=*.q_proj|*.v_proj,checkpointed") == ["full", "lora:r=16,targets=*.q_proj|*.v_proj", "checkpointed"]
    assert regimes_in("full;lora:r=16,targets=*.q;checkpointed") == ["full", "lora:r=16,targets=*.q", "checkpointed"]
    assert regimes_in("lora:r=4,lora:r=8,mine.yaml") == ["lora:r=4", "lora:r=8", "mine.yaml"]
    assert regimes_in(" full , lora ") == ["full", "lora"] and regimes_in("full,full") == ["full"] and regimes_in(",") == []
    assert regimes_in('{"name": "a", "train": ["*"]}') == ['{"name": "a", "train": ["*"]}']


def test_a_list_of_regimes_needs_no_semicolons(run):
    one, two = (json.loads(run("compare", "llama", "--json", "--batch", BATCH, "--regimes", text)) for text in ("full,lora:r=4,targets=*.q_proj,checkpointed", "full;lora:r=4,targets=*.q_proj;checkpointed"))
    assert one == two and [row["regime"] for row in one["regimes"]] == ["full", "lora:r=4,targets=*.q_proj", "checkpointed"]


@pytest.mark.parametrize("words", [("--regimes", ","), ("--conventions", ",")])
def test_an_empty_list_is_refused(words, capsys):
    assert main(["compare", "llama", *words]) == 2 and "e.g." in capsys.readouterr().err


def test_ratios_are_to_full_training():
    full, forward = interpreter("llama", {}), interpreter("llama", {}, "forward")
    rows = by_regime({"forward": forward, "full": full}, full, {"text": [64]})
    assert rows[1]["to_full"] == 1 and rows[1]["to_three_forward"] == 1 and rows[0]["to_full"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("kind", ["specs", "regimes", "conventions", "blocks", "operators", "devices"])
def test_every_kind_is_listed(kind, run, monkeypatch):
    found = json.loads(run("list", kind, "--json"))
    assert found["schema"] == 1 and len(found[kind]) >= 13
    monkeypatch.setenv("COLUMNS", "80")
    told = run("list", kind)
    names = list(found[kind]) if kind == "specs" else [row["name"] for row in found[kind]]
    assert max(map(len, told.splitlines())) <= 80 and all(re.search(rf"^ *{re.escape(name)}( |$)", told, re.MULTILINE) for name in names)
    if kind != "specs":
        assert all(row["doc"] for row in found[kind])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_silent_command_shows_a_clock_and_clears_it(monkeypatch):
    import time

    out, error = io.StringIO(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setattr(progress, "TICK", 0.01)
    with progress.clock("symflops draft"):
        limit = time.monotonic() + 20
        while "symflops draft: 0 s" not in error.getvalue() and time.monotonic() < limit:
            time.sleep(0.01)
        print("done")
    drawn = error.getvalue()
    assert "symflops draft: 0 s" in drawn and drawn.endswith("\r") and out.getvalue() == "done\n"
    assert sys.stdout is out and sys.stderr is error


def test_there_is_no_clock_but_on_a_terminal(monkeypatch):
    error = io.StringIO()
    monkeypatch.setattr(sys, "stderr", error)
    with progress.clock("symflops draft"):
        assert sys.stderr is error


def test_a_clock_draws_within_a_second():
    assert progress.PATIENCE + progress.TICK < 1


def test_amounts_that_a_batch_has_once_are_explained(capsys):
    assert main(["explain", "clip"]) == 0
    assert "logits = n_images*n of the" in " ".join(capsys.readouterr().out.split())
