"""Apache Spark, run locally, gives the integers of Python for the printed query."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.analysis.corpus import Priced, all_totals
from symflops.emit.sql.query import Writer
from symflops.emit.sql.sums import lengths_up_to
from tests.emit.test_sql import LONG, SPARK, batch_of, columns_of, drawn, expected_of_long, model_of, runs

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", params=[True, False], ids=["ansi", "wrapping"])
def spark(request):
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    made.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    yield made
    if request.param is False:
        made.stop()


def of_spark(spark, query):
    return [row.asDict() for row in spark.sql(query).collect()]


@pytest.mark.parametrize("name", ["llama", "gemma3", "llama4", "qwen_image", "qwen2_vl", "wan", "segformer", "wav2vec2", "bamba", "cosmos"])
def test_spark_sums_up_to_the_integers_of_python(spark, name):
    from pyspark.sql.types import LongType, StructField, StructType

    model = model_of(name)
    columns = columns_of(model)
    names, rows = drawn(model, columns, name)
    schema = StructType([StructField(one, LongType()) for one in names])
    spark.createDataFrame([[row[one] for one in names] for row in rows], schema).createOrReplaceTempView("lengths")
    priced = Priced(model, columns)
    (row,) = of_spark(spark, Writer(SPARK, "lengths", lengths_up_to(priced.totals)).aggregate(priced.totals))
    good = [one for one in rows if runs(model, columns, one)]
    assert (priced.refused_rows(row), priced.moments(row)) == (len(rows) - len(good), model.moments(**batch_of(model, columns, good)))


def test_spark_is_exact_up_to_a_million_samples_of_a_million_tokens(spark):
    spark.sql(LONG).createOrReplaceTempView("lengths")
    models = [Priced(model_of(name), {"text": ("n",)}) for name in ("llama", "gemma3", "llama4")]
    totals = all_totals(models)
    query = Writer(SPARK, "lengths", lengths_up_to(totals)).aggregate(totals)
    assert "_hi" in query
    (row,) = of_spark(spark, query)
    for priced in models:
        assert priced.moments(row).values == expected_of_long(priced.model)


def test_sums_beyond_64_bits_are_exact(spark):
    """A billion tokens a sample, above what a sum of 64 bits holds; and groups."""
    spark.sql("SELECT CAST(1073741823 - id AS BIGINT) AS n, id % 2 AS g FROM range(40)").createOrReplaceTempView("lengths")
    priced = Priced(model_of("llama"), {"text": ("n",)})
    found = of_spark(spark, Writer(SPARK, "lengths", lengths_up_to(priced.totals), ("g",)).aggregate(priced.totals))
    for row in found:
        lengths = [1073741823 - place for place in range(40) if place % 2 == row["g"]]
        assert sum(length**2 for length in lengths) > 2**64 and priced.moments(row) == priced.model.moments(text=lengths)


def test_the_command_prints_a_query_of_a_parquet_file(spark, tmp_path, capsys):
    from symflops.cli.main import main

    path = tmp_path / "a `b`.parquet"
    spark.sql("SELECT CAST(id AS INT) AS n_tokens FROM range(100)").coalesce(1).write.parquet(str(path))
    assert main(["corpus", "llama", "--lengths", str(path), "--columns", "text=n_tokens", "--sql", "spark"]) == 0
    (row,) = of_spark(spark, capsys.readouterr().out)
    assert row["n_rows"] == 100 and Path(path).is_dir()
