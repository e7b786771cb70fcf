"""The page on tables of lengths: its commands print what it shows, and its Arrow functions give the integers of an estimator."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest

from symflops.cli.main import main
from tests.docs.pages import DOCS, blocks, commands, run, same

PAGE = DOCS / "corpus.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus")
    for block in blocks(PAGE):
        if block.caption:
            (path / block.caption).write_text(block.text, "utf-8")
    return path


def test_its_commands_print_what_it_shows(folder):
    ran = 0
    for block in blocks(PAGE):
        for command, shown in commands(block) if block.language == "console" else ():
            status, printed = run(command, folder)
            assert status == 0 and same(shown, printed), printed
            ran += 1
    assert ran == 3 and (folder / "data.parquet").is_file()


def test_the_arrow_functions_of_ray_data(folder, monkeypatch):
    import pyarrow as pa

    monkeypatch.syspath_prepend(str(folder))
    for name in ("ray_data", "ray_rows"):
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    data, rows = sys.modules["ray_data"], sys.modules["ray_rows"]
    lengths = [10**6, 77, 4096, 10**6 - 1, 5]
    whole = pa.table({"n_tokens": lengths, "id": list("abcde")})
    batches = [whole.slice(0, 2), whole.slice(2)]
    found = data.total([data.sums(batch).to_pylist()[0] for batch in batches])
    assert found == data.llama.total(data.moments(text=lengths))
    priced = [row for batch in batches for row in rows.priced(batch).to_pylist()]
    assert sum(row["flops"] for row in priced) == found and [row["id"] for row in priced] == list("abcde")


def test_a_result_of_spark_is_priced_as_the_page_says(capsys, tmp_path):
    """The names of sums on the page are those that the command looks for."""
    (query,) = [text for block in blocks(PAGE) if block.language == "console" for command, text in commands(block) if "--sql" in command]
    names = [line.split(" AS ")[1].split(",")[0] for line in query.splitlines()[1:6]]
    assert names[0] == "n_rows" and names[3].endswith("_hi")
    (tmp_path / "result.json").write_text(json.dumps(dict(zip(names, [2, 2, 7, 0, 25]))))
    assert main(["corpus", "llama", "--columns", "text=n_tokens", "--from", str(tmp_path / "result.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"][0]["tokens"] == 7
