"""`symflops corpus`: one scan prices every model; rows that cannot run are told; faults have one line and a way out."""

from __future__ import annotations

import builtins
import json
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from symflops.cli.main import main
from symflops.library.lookup import interpreter

LENGTHS = [4096, 77, 1, 12_000, 5000, 4095]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"n_tokens": pa.array(LENGTHS, pa.int32()), "shard": ["a", "b", "a", "b", "a", "b"], "part": [0.5] * 6, "id": list("xyzuvw")}), path)
    return str(path)


def run(capsys, *words):
    code = main(["corpus", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_one_scan_prices_models_regimes_and_conventions(table, capsys):
    words = ["llama", "gemma3", "--lengths", table, "--columns", "text=n_tokens", "--regimes", "full,lora", "--conventions", "symflops,megatron"]
    code, out, err = run(capsys, *words, "--json")
    found = json.loads(out)
    assert code == 0 and not err and found["rows"] == 6 and len(found["models"]) == 8 and len(found["sums"]) == 1
    for figures in found["models"]:
        model = interpreter(figures["spec"], {}, figures["regime"], figures["convention"])
        m = model.moments(text=LENGTHS)
        assert [figures[kind] for kind in ("forward", "backward", "recomputed", "total")] == [model.forward(m), model.backward(m), model.recomputed(m), model.total(m)]
        assert figures["tokens"] == sum(LENGTHS) and figures["left_out"] == 0 and figures["evidence"]["grade"]


def test_groups_and_a_table_for_people(table, capsys):
    code, out, _ = run(capsys, "llama", "--lengths", table, "--columns", "text=n_tokens", "--group-by", "shard", "--json")
    groups = json.loads(out)["groups"]
    model = interpreter("llama", {})
    assert [group["by"] for group in groups] == [{"shard": "a"}, {"shard": "b"}]
    assert [group["models"][0]["total"] for group in groups] == [model.total(model.moments(text=LENGTHS[place::2])) for place in (0, 1)]
    code, out, _ = run(capsys, "llama", "--lengths", table, "--columns", "text=n_tokens", "--group-by", "shard")
    assert code == 0 and out.startswith("6 rows, in FLOPs\n") and "\nshard " in out and "25,269" in out


def test_a_result_prices_other_conventions_without_the_table(table, capsys, tmp_path):
    words = ("--columns", "text=n_tokens", "--json")
    _, out, _ = run(capsys, "llama", "mistral", "--lengths", table, *words)
    result = tmp_path / "result.json"
    result.write_text(out)
    code, out, _ = run(capsys, "llama", "--from", str(result), "--conventions", "verl", "--regimes", "lora", "--json")
    model = interpreter("llama", {}, "lora", "verl")
    assert code == 0 and json.loads(out)["models"][0]["total"] == model.total(model.moments(text=LENGTHS))
    code, _, err = run(capsys, "gpt_oss", "--from", str(result))
    assert code == 2 and "query it with this model" in err


def test_the_row_of_a_printed_query_is_priced(table, capsys, tmp_path):
    code, query, _ = run(capsys, "llama", "gemma3", "--lengths", table, "--columns", "text=n_tokens", "--group-by", "shard", "--sql", "duckdb")
    found = duckdb.connect().execute(query)
    rows = [dict(zip([column[0] for column in found.description], row)) for row in found.fetchall()]
    result = tmp_path / "rows.json"
    result.write_text(json.dumps(rows))
    code, out, _ = run(capsys, "gemma3", "--from", str(result), "--columns", "text=n_tokens", "--group-by", "shard", "--json")
    model = interpreter("gemma3", {})
    assert code == 0 and json.loads(out)["models"][0]["total"] == model.total(model.moments(text=LENGTHS)) and len(json.loads(out)["groups"]) == 2


@pytest.mark.parametrize("engine", ["spark", "postgres"])
def test_queries_of_other_engines_are_over_a_table(engine, capsys):
    code, query, _ = run(capsys, "llama", "--lengths", "corpus.lengths", "--columns", "text=n_tokens", "--sql", engine)
    assert code == 0 and ("`corpus`.`lengths`" if engine == "spark" else '"corpus"."lengths"') in query


def test_the_cost_of_each_row_is_written_for_packers(table, capsys, tmp_path):
    out = str(tmp_path / "costs.parquet")
    code, _, _ = run(capsys, "llama", "--lengths", table, "--columns", "text=n_tokens", "--group-by", "shard", "--per-sample", out)
    found = pq.read_table(out)
    model = interpreter("llama", {})
    assert code == 0 and found.column_names == ["shard", "n_tokens", "flops"] and found.schema.field("flops").type == pa.int64()
    assert found["flops"].to_pylist() == list(model.per_sample(text=LENGTHS))


def test_costs_beyond_64_bits_are_decimals(capsys, tmp_path):
    path, out = tmp_path / "long.parquet", str(tmp_path / "costs.parquet")
    lengths = [1_000_000_000, 5]
    pq.write_table(pa.table({"n": lengths}), path)
    assert run(capsys, "llama", "mistral", "--lengths", str(path), "--columns", "text=n", "--per-sample", out)[0] == 0
    found = pq.read_table(out)
    name = "flops llama full symflops"
    assert found.schema.field(name).type == pa.decimal128(38, 0)
    assert [int(value) for value in found[name].to_pylist()] == [int(value) for value in interpreter("llama", {}).per_sample(text=lengths)]


@pytest.mark.parametrize(
    ("values", "reason"),
    [([5, None, 7], "row 1: 'n' is null"), ([5, 6, -7], "row 2: 'n' is -7, not between 0 and"), ([2**40, 6, -7], "row 0: 'n' is 1,099,511,627,776, not between")],
)
def test_rows_that_cannot_run_are_left_out_and_told(values, reason, capsys, tmp_path):
    path, out = tmp_path / "bad.parquet", str(tmp_path / "costs.parquet")
    pq.write_table(pa.table({"n": pa.array(values, pa.int64())}), path)
    code, told, err = run(capsys, "llama", "--lengths", str(path), "--columns", "text=n", "--json", "--per-sample", out)
    good = [value for value in values if value in (5, 6, 7)]
    model, figures = interpreter("llama", {}), json.loads(told)["models"][0]
    assert code == 1 and figures["left_out"] == 3 - len(good) and figures["total"] == model.total(model.moments(text=good))
    assert f"{3 - len(good)} of 3 rows are left out; the first is {reason}" in err
    assert [cost is not None for cost in pq.read_table(out)["flops"].to_pylist()] == [value in good for value in values]


def test_a_row_that_is_too_short_for_the_model_is_told(capsys, tmp_path):
    path = tmp_path / "images.csv"
    path.write_text("h,w\n224,224\n224,3\n")
    code, _, err = run(capsys, "vit", "--lengths", str(path), "--columns", "images=h,w")
    assert code == 1 and "the first is row 1: 'images' has 'w' = 3, and the model needs at least 16" in err


def test_csv_json_arrow_folders_and_patterns_are_tables(table, capsys, tmp_path):
    whole = pq.read_table(table)
    (tmp_path / "f").mkdir()
    pq.write_table(whole, tmp_path / "f" / "1.parquet")
    (tmp_path / "t.csv").write_text("n_tokens\n" + "\n".join(map(str, LENGTHS)))
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"n_tokens": n}) for n in LENGTHS))
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, whole.schema) as writer:
        writer.write_table(whole)
    figures = []
    for name in ("t.csv", "t.jsonl", "t.arrow", "f", "f/*.parquet"):
        code, out, err = run(capsys, "llama", "--lengths", str(tmp_path / name), "--columns", "text=n_tokens", "--json")
        assert code == 0, err
        figures.append(json.loads(out)["models"][0]["total"])
    assert len(set(figures)) == 1 and figures[0] > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["llama"], "say which columns hold the lengths"),
        (["llama", "--columns", "text=n_tokens"], "say which table"),
        (["llama", "--columns", "text"], "--columns maps streams to columns"),
        (["llama", "--columns", "txt=n_tokens", "--lengths", "{}"], "has no stream 'txt': did you mean 'text'"),
        (["llama", "--columns", "text=n_token", "--lengths", "{}"], "has no column 'n_token': did you mean 'n_tokens'"),
        (["llama", "--columns", "text=part", "--lengths", "{}"], "column 'part' is DOUBLE, and lengths are whole numbers"),
        (["llama", "--columns", "text=n_tokens", "--lengths", "{}", "--group-by", "shrd"], "has no column 'shrd'"),
        (["vit", "--columns", "images=n_tokens", "--lengths", "{}"], "has 2 columns (h, w), not 1"),
        (["qwen_image", "--columns", "latent=n_tokens", "--lengths", "{}"], "needs the stream 'prompt': --columns 'prompt=y'"),
        (["clip", "--columns", "text=n_tokens; images=a,b", "--lengths", "{}"], "not sums over rows (logits)"),
        (["llama", "--columns", "text=n_tokens", "--lengths", "none.parquet"], "none.parquet"),
        (["llama", "--columns", "text=n_tokens", "--lengths", "data.txt"], "a table is a file or pattern that ends in .parquet"),
        (["llama", "gemma3", "--columns", "text=n_tokens", "--config", "x.json"], "--config and --set are of one model"),
        (["llama", "--columns", "text=n_tokens", "--lengths", "{}", "--conventions", ","], "name at least one each"),
        (["lama", "--columns", "text=n_tokens"], "there is no spec 'lama'"),
        (["llama", "--columns", "text=n_tokens", "--lengths", "{}", "--per-sample", "no/folder/x.parquet"], "no/folder"),
    ],
)
def test_faults_have_one_line(words, told, table, capsys):
    code, out, err = run(capsys, *(word.format(table) if word == "{}" else word for word in words))
    assert code == 2 and not out and told in err and len(err.splitlines()) == 1


def test_without_duckdb_one_line_says_the_way_out(table, capsys, monkeypatch):
    kept = builtins.__import__

    def without(name, *rest, **more):
        if name == "duckdb":
            raise ImportError(name)
        return kept(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "duckdb", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    code, _, err = run(capsys, "llama", "--lengths", table, "--columns", "text=n_tokens")
    assert code == 2 and "pip install 'symflops[corpus]'" in err and "--sql" in err and len(err.splitlines()) == 1
    assert run(capsys, "llama", "--columns", "text=n_tokens", "--sql", "postgres")[0] == 0
