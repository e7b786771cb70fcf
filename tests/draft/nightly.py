"""Drafts classes, and looks for drafts that say exact and are not: ``python -m tests.draft.nightly``; exit 1 if there is one.

``python -m tests.draft.nightly --page docs/drafted.md LOG..`` writes the page of the documentation from what a run has printed.

A draft that says exact is written to a folder with its census and read as any spec is. It is compared with every measured record
of its class, with the class at its own defaults, and with the class at variations that other random numbers choose than those of
its own proof. It may refuse a config; it may not be wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import re
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from symflops.api import load
from symflops.support.findings import SymflopsError

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "tests" / "data" / "truth"
OUTSIDE = ROOT / "benchmarks" / "draft_outside.json"
"""Classes without records, which were chosen before any of them was tried."""
SKIPPED = ("sdpa", "grouped", "cpu-eager")
SEED = 2026
TOGETHER = 20
SHORTER = 8
WORDS = 4
LEFT_OUT = "(left out)"
GRACE = 600.0


class Reader:
    """A draft as a user reads it, beside its class; ``runs_on`` is cpu where values of tensors decide what the class does."""

    def __init__(self, path: Path, reference: str, inputs: dict[str, Any], runs_on: str) -> None:
        self.model, self.reference, self.inputs, self.runs_on = load(path), reference, inputs, runs_on

    def real(self, config: dict[str, Any], inputs: dict[str, Any], device: str = "meta") -> Any:
        """The complete config, the parameters and the FLOPs of the class; None if it does not accept the config.

        FLOPs are None if the class does not run, or cannot be run on ``device``.
        """
        from symflops.draft.prove.prove import measured
        from symflops.draft.trace.steps import Subject, full_config
        from symflops.verify.limits import attempt
        from symflops.verify.live import parameters_of

        subject = Subject(self.reference, config, inputs, device=device)
        model = attempt(subject.build, 120.0)
        if model is None:
            return None
        passes = attempt(lambda: measured(model, subject.arguments()), 120.0) if device in (self.runs_on, "cpu") else None
        return full_config(model, config), parameters_of(model)[0], passes

    def drafted(self, config: dict[str, Any], inputs: dict[str, Any], known: dict[str, Any] | None) -> tuple[Any, int, tuple[int, int]]:
        """Parameters by name if ``known`` names some, their number of elements, and FLOPs on inputs."""
        from symflops.evaluate.parameters import instances_of

        estimator = self.model.estimator(config, "full", "torch")
        names = None if known is None else set(instances_of(estimator.program, estimator.sizes))
        moments = estimator.moments(**batch_of(estimator.program, inputs))
        return names, estimator.parameters, (estimator.forward(moments), estimator.backward(moments))

    def takes(self, config: dict[str, Any], inputs: dict[str, Any]) -> bool:
        """Whether inputs have the shapes of the draft's layouts: a class may broadcast a picture's places along another picture."""
        from symflops.draft.write.values import identifier
        from symflops.verify.running import arguments_of

        estimator = self.model.estimator(config, "full", "torch")
        shapes = {identifier(name): shape for name, shape in shapes_in(inputs, "")}
        own = arguments_of(estimator.program, batch_of(estimator.program, inputs), estimator.sizes, {})
        return all(list(tensor.shape) == shapes.get(name, list(tensor.shape)) for name, tensor in own.items())

    def verdict(self, config: dict[str, Any], inputs: dict[str, Any], device: str = "meta") -> str:
        """Whether the draft equals the class at a config, as written and complete: equal, refused, wrong: why; unbuilt."""
        real = self.real(config, inputs, device)
        if real is None:
            return "unbuilt"
        complete, shapes, passes = real
        told = []
        for one in (config, json.loads(json.dumps(complete, default=str))):
            try:
                names, total, own = self.drafted(one, inputs, shapes)
            except (SymflopsError, ArithmeticError, LookupError) as error:
                told.append(f"refused: {error}"[:160])
                continue
            elements = sum(product(shape) for shape in shapes.values())
            if total != elements or not names >= set(shapes):
                return f"wrong: {elements:,} parameters real, {total:,} drafted"
            if passes is not None and own != passes:
                return f"wrong: FLOPs {passes} real, {own} drafted" if self.takes(one, inputs) else "other: inputs that it does not take"
            told.append("equal")
        return "equal" if "equal" in told else told[0]


def product(shape: Any) -> int:
    found = 1
    for size in shape:
        found *= size
    return found


def batch_of(program: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The batch of a program for described inputs, by the layouts of its inputs."""
    from symflops.draft.write.values import identifier

    shapes, lengths, items = dict(shapes_in(inputs, "")), {}, 1
    shapes = {identifier(name): shape for name, shape in shapes.items()}
    for info in program.inputs:
        axes, shape = info.layout.axes if info.layout else (), shapes.get(info.name, ())
        if axes and shape and len(axes) != len(shape):
            raise SymflopsError(f"'{info.name}' has {len(shape)} dimensions, not {' '.join(axes)}")
        for axis, size in zip(axes, shape, strict=False):
            if axis == "b":
                items = size
            elif axis.isidentifier():
                lengths.setdefault(axis, size)
    found = {}
    for stream in program.streams:
        each = [lengths.get(name, 0) for name in stream.variables]
        if each:
            found[stream.name] = [each[0] if len(each) == 1 else each] * items
    return found or {stream.name: [[]] * items for stream in program.streams[:1]}


def shapes_in(inputs: Any, name: str) -> Any:
    """The shapes of described tensors, by their names."""
    for key, value in inputs.items() if isinstance(inputs, dict) else enumerate(inputs) if isinstance(inputs, list) else ():
        path = f"{name}.{key}" if name else str(key)
        if isinstance(value, dict) and "shape" in value:
            yield path, value["shape"]
        elif isinstance(value, dict) and "value" in value:
            yield path, shape_of(value["value"])
        else:
            yield from shapes_in(value, path)


def shape_of(value: Any) -> list[int]:
    """The shape of nested lists."""
    return [len(value), *shape_of(value[0])] if isinstance(value, list) and value else []


def changes_of(reference: str, config: dict[str, Any], complete: dict[str, Any]) -> Any:
    """Other configs: each field varied alone, then several together, then without some."""
    from symflops.draft.prove.vary_fields import every_field, renamed
    from symflops.draft.trace.steps import completed
    from symflops.verify.census.fields import value_at
    from symflops.verify.census.observation import with_values
    from symflops.verify.census.survey import widths
    from symflops.verify.census.variations import Words, alike, variations
    from symflops.verify.classes import plain_lists, referenced

    kind, random = referenced(reference), Random(SEED)
    base, words = completed(kind, complete), Words(kind)
    every: dict[str, list[Any]] = {}
    for item in every_field(kind, base):
        part = item.path.rpartition(".")[0]
        if part and not isinstance(value_at(base, part), dict):
            continue
        value = plain_lists(value_at(base, item.path))
        known = words.of(item)
        known = random.sample(known, min(len(known), WORDS))
        every[item.path] = [*variations(item, value, known, widths(base, part), random), *alike(item.path, value, base)]
        for other in every[item.path]:
            yield {item.path: other}, with_values(config, {item.path: other}, base, renamed(kind))
    for _ in range(TOGETHER):
        some = {path: random.choice(values) for path, values in every.items() if values and random.random() < 0.2}
        yield some, with_values(config, some, base, renamed(kind))
    for _ in range(SHORTER if len(config) > 1 else 0):
        left = random.sample(sorted(config), random.randint(1, 2))
        yield dict.fromkeys(left, LEFT_OUT), {name: value for name, value in config.items() if name not in left}


def checked(path: Path, records: list[dict[str, Any]], first: dict[str, Any], tell: Any) -> None:
    """Compare a draft that says exact, and tell every verdict."""
    reader = Reader(path, f"{first['package']}:{first['class']}", first["inputs"], first["device"])
    for record in records:
        if any(word in record["tag"] for word in SKIPPED) or "fwd_flops" not in record:
            continue
        try:
            _, total, passes = reader.drafted({**record["config"], "architectures": [record["class"]]}, record["inputs"], None)
        except SymflopsError as error:
            tell("record", record["tag"], f"refused: {error}"[:160])
            continue
        known = (record["fwd_flops"], record.get("bwd_flops_grouped_conv_fixed") or record["bwd_flops"])
        if len(record.get("loss_over", ())) < len(reader.model.spec.outputs):  # the loss of the draft sums every result
            known, passes = known[:1], passes[:1]
        equal = total == record["params_total"] and passes == known
        if set(record["inputs"]) != set(first["inputs"]) and total == record["params_total"]:
            continue  # a batch of other streams
        wanted = (record["params_total"], *known)
        tell("record", record["tag"], "equal" if equal else f"wrong: {wanted} measured, {(total, *passes)} drafted")
    tell("defaults", "", reader.verdict({}, first["inputs"]))
    tell("base", first["tag"], reader.verdict(dict(first["config"]), first["inputs"], "cpu"))
    base = reader.real(dict(first["config"]), first["inputs"])
    for changes, config in changes_of(reader.reference, dict(first["config"]), base[0]) if base else ():
        device = reader.runs_on if LEFT_OUT in changes.values() else "cpu"  # what is left out may be large
        tell("field", json.dumps(changes, default=str)[:120], reader.verdict(config, first["inputs"], device))


def work(records: list[dict[str, Any]], timeout: float, pipe: Any) -> None:
    """Draft one class and check it, in a process of its own."""
    warnings.filterwarnings("ignore")
    import diffusers
    import torch
    import transformers

    from symflops.cli.draft import save
    from symflops.draft.draft import MEMORY, draft
    from symflops.draft.trace.steps import Subject
    from symflops.verify.limits import limit_memory

    torch.set_num_threads(1)
    limit_memory(MEMORY)
    transformers.logging.set_verbosity_error()
    diffusers.logging.set_verbosity_error()
    small = [one for one in records if not one["published_size"] and not any(word in one["tag"] for word in SKIPPED)]
    first = (small or records)[0]
    subject = Subject(f"{first['package']}:{first['class']}", first["config"], first["inputs"], {}, first["device"])
    try:
        found = draft(subject, timeout)
    except Exception as error:  # one class must not end the run
        pipe.send(("draft", "", f"none: {type(error).__name__}: {error}"[:200]))
        return
    pipe.send(("draft", str(len(found.fields["guarded"])), "exact" if found.exact else f"partial: {next(found.partial)}"[:240]))
    if found.exact:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "draft.yaml")
            save(path, found.text, found.census)
            checked(path, records, first, lambda *row: pipe.send(row))
    pipe.send(("end", "", ""))


def rows_of(records: list[dict[str, Any]], timeout: float) -> list[tuple[str, str, str]]:
    """What the process of one class tells."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=work, args=(records, timeout, there))
    process.start()
    there.close()
    rows: list[tuple[str, str, str]] = []
    with contextlib.suppress(EOFError):
        while here.poll(3 * timeout + GRACE) and (not rows or rows[-1][0] != "end"):
            rows.append(here.recv())
    process.terminate()
    process.join()
    return [row for row in rows if row[0] != "end"] or [("draft", "", "none: it ended without a word")]


def records_by_class() -> dict[str, list[dict[str, Any]]]:
    """Records by class; those of classes outside have a config and inputs, and no figures."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in (*sorted(RECORDS.glob("*.json")), OUTSIDE):
        for record in json.loads(path.read_text("utf-8")):
            if record.get("package") in ("transformers", "diffusers") and not record.get("regime"):
                found.setdefault(record["class"], []).append(record)
    return found


HEAD = """# How drafts go

`python -m tests.draft.nightly` wrote this page. It ran `symflops draft` on every class with measured records, and on eight without, which were chosen before any of
them was tried, from one small config each. A draft is *exact* if nothing is unsolved, if every field of the full config is followed, without effect or guarded by the
draft's census, and if it agrees with PyTorch's counter at five or more configs that the fit never saw and at the class's own defaults: parameters by name, shape and
number, the forward pass, and the backward pass under full training, LoRA and two random choices of frozen parts. Everything else is *partial*, with the reason.

A draft that says exact was then saved and read back, as any spec is. It was compared with each measured record of its class, with the class's defaults, and with
the class under variations of its fields that its own proof had not drawn, fields left out among them. It may refuse a config, and it may not be wrong.
"""
COLUMNS = ("class", "draft", "records", "variations", "of them refused", "do not run", "why it is partial")
LINE = re.compile(r"(\w+): (exact|partial|none)(?:: (.*))?; ?([^;]*)")


def page(lines: list[str]) -> str:
    """The page of the documentation: a row for the last printed line of each class."""
    rows, exact, wrong = [], 0, 0
    last = {found[1]: found.groups() for line in lines if (found := LINE.fullmatch(line.rstrip()))}
    for name, verdict, why, counts in map(last.get, sorted(last)):
        told = Counter({key: int(number) for key, _, number in (one.rpartition(" ") for one in filter(None, counts.split(", ")))})
        exact += verdict == "exact"
        wrong += any(key.endswith("wrong") for key in told)
        records = f"{told['record equal']} of {sum(told[f'record {word}'] for word in ('equal', 'refused', 'wrong'))}"
        fields = told["field equal"] + told["field refused"] + told["field wrong"]
        figures = (records, fields, told["field refused"], told["field unbuilt"]) if verdict == "exact" else ("", "", "", "")
        reason = re.sub(r"[|<]", "/", why or "")
        rows.append((name, verdict, *figures, reason if len(reason) < 120 else f"{reason[:118]}..."))
    table = "\n".join(f"| {' | '.join(map(str, row))} |" for row in (COLUMNS, ["---"] * len(COLUMNS), *rows))
    return f"{HEAD}\nOf {len(rows)} classes {exact} say exact; {wrong or 'none'} of these {'is' if wrong < 2 else 'are'} wrong anywhere.\n\n{table}\n"


def main() -> int:
    """Draft, check, and print a line for each class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--page", type=Path)
    parser.add_argument("logs", nargs="*", type=Path)
    given = parser.parse_args()
    if given.page:
        given.page.write_text(page([line for log in given.logs for line in log.read_text("utf-8").splitlines()]), "utf-8")
        return 0
    exact, false = 0, []
    every = records_by_class()
    for name in given.only or every:
        rows = rows_of(every[name], given.timeout)
        verdict = rows[0][2]
        counts = Counter(f"{kind} {told.partition(':')[0]}" for kind, _, told in rows[1:])
        wrong = [row for row in rows[1:] if row[2].startswith("wrong")]
        exact += verdict == "exact"
        false += [name] if wrong else []
        print(f"{name}: {verdict}; " + ", ".join(f"{key} {count}" for key, count in sorted(counts.items())), flush=True)
        for kind, what, told in wrong[:5]:
            print(f"    {kind} {what}: {told}", flush=True)
    print(f"{exact} say exact; {len(false)} of them are wrong somewhere: {', '.join(false) or 'none'}")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
