"""Price a corpus: compute the FLOPs of every row of a table of lengths, for any number of models, regimes and conventions.

  symflops corpus llama mistral --lengths data.parquet --columns text=n_tokens
  symflops corpus qwen_image --lengths 'data/*.parquet' --columns 'latent=latents; prompt=n' --group-by shard --json
  symflops corpus llama3-8b --lengths data.parquet --columns text=n_tokens --per-sample costs.parquet
  symflops corpus llama --columns text=n_tokens --lengths corpus.lengths --sql spark
  symflops corpus llama gemma3 --from result.json

One scan computes the sums that all models need. --columns maps each stream to its column, or to a column per axis. --sql
prints the query for another engine; --from prices any models from its result, as JSON: a row, or a list of rows. Rows that a
model cannot run are left out; a message says how many.

Exit codes: 0 fine, 1 rows are left out, 2 usage.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from symflops.cli.terminal import CONFIG, JSON, argument, arguments_of
from symflops.support.errors import SymflopsError

if TYPE_CHECKING:
    from symflops.analysis.corpus import Priced

MOST_GROUPS = 20


configure = arguments_of(
    argument("models", nargs="+", metavar="SPEC", help="names or paths of specs, or folders with a config"),
    argument("--lengths", metavar="TABLE", help="Parquet, CSV, JSON or Arrow files, or a folder; with --sql a table"),
    argument("--columns", metavar="S=C;..", help="the columns of each stream, e.g. 'text=n_tokens' or 'latent=h,w; prompt=n'"),
    argument("--regimes", default="full", metavar="R,R", help="what trains (default: full)"),
    argument("--conventions", default="symflops", metavar="C,C", help="what is counted (default: symflops)"),
    argument(
        "--group-by", default="", metavar="COLUMN", help="figures per value of a column, or of several with commas between"
    ),
    argument("--per-sample", metavar="OUT", help="write a Parquet file with the FLOPs of each row"),
    argument("--sql", choices=("duckdb", "spark", "postgres"), help="print the query for an engine"),
    argument("--from", dest="result", metavar="FILE", help="price the result of such a query, or of --json"),
    CONFIG,
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Scan a table, or read a result, and print the cost of its rows; or print the query.

    Return the exit code: 1 if some rows cannot run on a model.
    """
    given = from_file(args.result) if args.result else None
    models = priced(args, given)
    by = [name.strip() for name in args.group_by.split(",") if name.strip()]
    if args.sql:
        from symflops.cli.actions.corpus import query_for

        print(query_for(args.sql, args.lengths or "lengths", models, by))
        return 0
    if given is not None:
        if args.lengths or args.per_sample:
            raise SymflopsError("--from has the sums already: leave out --lengths and --per-sample")
        return show(args, answer(models, given["rows"], by or given["by"]), "")
    if not args.lengths:
        raise SymflopsError("say which table: --lengths data.parquet, or a result with --from")
    return scanned(args, models, by)


def scanned(args: argparse.Namespace, models: Sequence[Priced], by: Sequence[str]) -> int:
    """Scan the table, print the cost of its rows, and write costs per row if ``--per-sample`` is given.

    Return the exit code, as :func:`show`.
    """
    from symflops.cli.actions.corpus import Scan, Table

    scan = Scan(Table(args.lengths), models, by)
    found = answer(models, scan.rows, by)
    if args.per_sample:
        columns = [name for model in models for names in model.columns.values() for name in names]
        found["per_sample"] = {"path": args.per_sample, "columns": scan.costs(args.per_sample, [*by, *columns])}
    worst = next((model for model, row in zip(models, found["models"], strict=True) if row["left_out"]), None)
    return show(args, found, scan.first_unfit(worst) if worst else "")


def priced(args: argparse.Namespace, given: dict[str, Any] | None) -> list[Priced]:
    """Build an estimator, with the columns of its lengths, for each model, regime and convention.

    ``given`` is a stored result of :func:`from_file`, or None; it names the columns if the command line does not.

    Raises:
        SymflopsError: a model cannot be estimated, or no columns are named.
    """
    from symflops.analysis.convention_comparison import regimes_in
    from symflops.analysis.corpus import Priced, columns_in
    from symflops.cli.terminal import tell
    from symflops.library.naming import estimator_for, selected
    from symflops.library.settings import settings_in

    columns = columns_in(args.columns) if args.columns else given["columns"] if given else None
    if not columns:
        raise SymflopsError("say which columns hold the lengths, e.g. --columns text=n_tokens")
    if (args.config or args.set) and len(args.models) > 1:
        raise SymflopsError("--config and --set are of one model: name folders or files with a config in place of specs")
    settings = settings_in(args.set or ())
    conventions = list(dict.fromkeys(filter(None, (name.strip() for name in args.conventions.split(",")))))
    regimes = regimes_in(args.regimes)
    if not conventions or not regimes:
        raise SymflopsError("--regimes and --conventions name at least one each, e.g. full and symflops")
    models = [selected(word, args.config, None, settings) for word in args.models]
    args.note = "" if args.json else "\nsymflops: ".join(dict.fromkeys(model.note for model in models if model.note))
    return [
        Priced(estimator_for(model, regime, convention, tell), columns)
        for model in models
        for regime in regimes
        for convention in conventions
    ]


def from_file(path: str) -> dict[str, Any]:
    """Read a stored result: its ``rows``, its ``columns`` (None if unknown), and columns to group ``by``.

    Raises:
        SymflopsError: the file does not contain a result.
    """
    from symflops.support.reading import read_json

    found = read_json(path)
    if isinstance(found, dict) and "sums" in found:
        return {"rows": found["sums"], "columns": found["columns"], "by": found["group_by"]}
    rows = found if isinstance(found, list) else [found]
    if not rows or not all(isinstance(row, dict) and "n_rows" in row for row in rows):
        raise SymflopsError(f"{path}: a result is a row with 'n_rows', or a list of rows, as the query of --sql returns them")
    return {"rows": rows, "columns": None, "by": []}


def answer(models: Sequence[Priced], rows: Sequence[dict[str, Any]], by: Sequence[str]) -> dict[str, Any]:
    """Build the JSON object of a result: the figures of each model over all ``rows``, and by group.

    ``by`` are the columns whose values make the groups.
    """
    from symflops.analysis.corpus import summed_rows

    whole = summed_rows(rows)
    figures = [{**model.described(), **model.figures(whole), "left_out": model.refused_rows(whole)} for model in models]
    columns = {name: names for model in models for name, names in model.columns.items()}
    found = {"schema": 1, "rows": int(whole["n_rows"]), "columns": columns, "group_by": list(by), "models": figures}
    if by:
        missing = [name for name in by if any(name not in row for row in rows)]
        if missing:
            raise SymflopsError(f"the result has no column '{missing[0]}' to group by")
        found["groups"] = [{"by": {n: row[n] for n in by}, "models": [model.figures(row) for model in models]} for row in rows]
    return {**found, "sums": list(rows)}


def show(args: argparse.Namespace, found: dict[str, Any], first: str) -> int:
    """Print the result ``found``; return the exit code, 1 if some rows cannot run on a model.

    ``first`` describes the first such row; empty if unknown.
    """
    from symflops.cli.terminal import columns, tell, width
    from symflops.evaluate.units import NAMES, scaled

    notes = [note for model in found["models"] for note in model["notes"]]
    for note in dict.fromkeys(notes):
        tell(note)
    left = max(model["left_out"] for model in found["models"])
    if left:
        where = f"; the first is {first}" if first else ""
        tell(f"{left:,} of {found['rows']:,} rows are left out{where}")
    if args.json:
        print(json.dumps(found, default=str))
        return int(left > 0)
    names = labels(found["models"])
    cells: list[tuple[str, ...]] = [("", "forward", "backward", "recomputed", "total", "tokens")]
    for name, model in zip(names, found["models"], strict=True):
        figures = (scaled(model[kind]) for kind in ("forward", "backward", "recomputed", "total"))
        cells.append((name, *figures, f"{model['tokens'] or 0:,}"))
    units = ", ".join(dict.fromkeys(NAMES[model["unit"]] for model in found["models"]))
    print("\n".join([f"{found['rows'] - left:,} rows, in {units}", *columns(cells, width())]))
    for place, name in enumerate(names if found["group_by"] else ()):
        cells = [(", ".join(found["group_by"]), "total", "tokens")]
        for group in found["groups"][:MOST_GROUPS]:
            row = group["models"][place]
            cells.append((", ".join(map(str, group["by"].values())), scaled(row["total"]), f"{row['tokens'] or 0:,}"))
        more = len(found["groups"]) - MOST_GROUPS
        print(
            "\n".join(
                ["", name, *columns(cells, width()), *([f"and {more:,} more: --json has all groups"] if more > 0 else [])]
            )
        )
    return int(left > 0)


def labels(models: Sequence[dict[str, Any]]) -> list[str]:
    """Label each model by its spec, plus regime and convention if these differ between models."""
    keys = [key for key in ("regime", "convention") if len({model[key] for model in models}) > 1]
    return [", ".join(str(model[key]) for key in ("spec", *keys)) for model in models]
