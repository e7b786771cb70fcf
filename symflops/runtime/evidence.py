"""What an answer rests on: the class, the fields of the config that were read, and what measured it."""

from __future__ import annotations

from symflops.diagnostics.errors import close_to, cut
from symflops.model.evaluate import ConfigError
from symflops.model.format import line_of
from symflops.runtime.classes import NAMING, class_name, named_classes
from symflops.runtime.config import as_read, look_up
from symflops.runtime.sizes import sizes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from symflops.runtime.stored import Stored

PROVEN, MEASURED, AS_SPECIFIED = "proven here", "measured", "as specified"
"""The grades of an answer, the strongest first."""

LIBRARIES = ("transformers.", "diffusers.", "torch.")
LONGEST_KEY = 60
"""Of a longer key, its beginning and its end are shown."""
ALIKE, SHORT = 0.88, 4
"""How alike two keys are that are taken for one, as :mod:`difflib` measures it: ``hidden_sise`` has 0.91."""

EVERYWHERE = frozenset({
    *NAMING, "auto_map", "torch_dtype", "dtype", "transformers_version", "quantization_config", "_name_or_path",
    "name_or_path", "_diffusers_version", "_attn_implementation", "_attn_implementation_autoset", "_commit_hash",
    "_attn_implementation_internal", "attn_implementation", "task_specific_params", "finetuning_task",
    "problem_type", "torchscript", "use_bfloat16",
    "pruned_heads", "tokenizer_class", "prefix", "bos_token_id", "eos_token_id", "pad_token_id",
    "sep_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "suppress_tokens",
    "begin_suppress_tokens", "return_dict", "return_dict_in_generate", "output_scores", "output_hidden_states",
    "output_attentions", "use_cache", "is_encoder_decoder", "is_decoder", "tie_encoder_decoder",
    "cross_attention_hidden_size", "chunk_size_feed_forward", "id2label", "label2id", "num_labels", "max_length",
    "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature",
    "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "remove_invalid_values",
    "exponential_decay_length_penalty", "tf_legacy_loss", "generation_config", "rope_scaling", "rope_theta",
})  # fmt: skip
"""Keys that any config of transformers or diffusers may have, or had once, without an effect on the model's structure
(transformers, ``configuration_utils.py``, ``PretrainedConfig``; diffusers, ``configuration_utils.py``, ``ConfigMixin``)."""

IDS = frozenset({"id", "ids", "index", "idx"}), frozenset({
    "audio", "begin", "bos", "cls", "decoder", "end", "eos", "image", "mask", "pad", "sep", "speech", "start", "token", "unk",
    "video", "vision",
})  # fmt: skip
"""The last word of a key of token ids, and words of which it has one before it: ``eos_token_id``, ``image_token_index``."""
LIMITS = frozenset({"max", "maximum", "min", "minimum", "length", "len", "limit", "ctx", "context", "positions"}), frozenset({
    "embeddings", "initial", "input", "model", "n", "new", "num", "original", "output", "position", "seq", "sequence", "text",
    "token", "tokens",
})  # fmt: skip
"""The words of a key that limits lengths, of which it has one, and words that may be beside them: ``max_seq_len``."""
FACTOR = 2
"""A number with a point below it is a rate or a factor, and no size."""


def evidence(model: Any) -> dict[str, Any]:
    """What an estimate rests on.

    Args:
        model: The estimator. Its ``measured`` is what the catalog says of the spec's records: how many of each class are exact,
            and why others are ``inexact``. It is ``proven`` if the real class was built and agrees in every parameter.

    Returns:
        ``grade``; the ``class``, and ``named_by``, the field that names it (None for the spec's first class); the keys that
        were ``read``; those that were absent and ``defaulted``; those that are ``unread`` because neither the spec nor the
        class knows them; the ``census`` of the class as counts of its fields (None without one); how many ``records`` of the
        class are exact; ``why`` the grade is no higher, or what was not measured all the same; and the ``exception`` that the
        convention makes for the class.
    """
    document, found = model.stored.document, as_read(model.stored.document, model.config)
    references = document["references"]
    field, name = next(named_classes(found), (None, ""))
    if not name and found.get("model_type") in document["model_types"]:
        field = "model_type"
    census, kind = census_of(document, name), name or (class_name(references[0]) if references else None)
    keys = [row["keys"] for row in document["fields"]]
    given = [next((key for key in names if look_up(found, [key]) is not None), "") for names in keys]
    told = {
        "class": kind,
        "named_by": field,
        "read": list(filter(None, given)),
        "defaulted": [names[0] for names, key in zip(keys, given, strict=True) if not key],
        "unread": [path for path, _ in unread(model.stored, found)],
        "census": None if census is None else {kind: len(census.get(kind, ())) for kind in ("described", "free", "guarded")},
        "records": model.measured.get("records", {}).get(kind, 0),
    }
    grade, why = graded(model, told)
    return {"grade": grade, **told, "why": why or unseen(model), "exception": model.exception or None}


def graded(model: Any, told: Mapping[str, Any]) -> tuple[str, str]:
    """The grade of an estimate, and why it is no higher.

    A class is measured by its records, and a regime by its rules (:mod:`symflops.derive.rules`). A class whose parameters agree
    needs no records; but no proof runs what a regime does to it.
    """
    kind, names_no_class = told["class"], told["named_by"] in (None, "model_type")
    why = next(filter(None, [model.stored.regimes[model.regime].get("unmeasured", ""), *inexact(model.measured)]), "")
    if why or model.proven:
        return (AS_SPECIFIED, why) if why else (PROVEN, "")
    if not any(reference.startswith(LIBRARIES) for reference in model.stored.document["references"]):
        why = "the spec names no class of a library"
    elif not told["records"]:
        why = f"{kind} has no record"
    elif told["census"] is None:
        why = f"the fields of {kind} have no census"
    elif told["unread"] and names_no_class:  # a class that is named ignores what it does not know
        why = f"nothing reads the config's {shortened(told['unread'])}"
    return (AS_SPECIFIED, why) if why else (MEASURED, "")


def inexact(measured: Mapping[str, Any]) -> list[str]:
    """A line that says why not every record of a spec is exact, if that is so."""
    return [f"not every record is exact: {measured['inexact']}"] if measured.get("inexact") else []


def unseen(model: Any) -> str:
    """The part of an estimate that PyTorch's counter, which measured the rest, does not see; empty if there is none."""
    stored, convention = model.stored, model.convention
    document, useful = stored.document, stored.of_convention("pairs", convention) == "useful"
    if convention in dict(stored.regimes[model.regime].get("own", ())):
        return f"the rules of convention '{convention}' are its own"
    lines = (line_of(document, document["all_lines"][place]) for place in stored.lines(model.regime, convention))
    work = [document["work"][line[1]] for line in lines]
    amounts = (document["all_amounts"][row["amount"]] for row in work)
    if useful and any(amount["useful"] != amount["executed"] for amount in amounts):
        return "which pairs a mask leaves is the spec's word"
    missed = sorted({row["operator"] for row in work if not row.get("seen", True)})
    told = missed and stored.of_convention("unseen", convention)
    return f"PyTorch's counter does not see all of {', '.join(missed)}" if told else ""


def left_to_class(program: Stored, config: Mapping[str, Any]) -> Iterator[str]:
    """Name each number of layers that a config leaves to its class, though the class's library writes all fields.

    diffusers saves every argument of a class, so a file without one was edited; transformers leaves defaults out.
    """
    document, found = program.document, as_read(program.document, config)
    written = any(reference.startswith("diffusers.") for reference in document["references"])
    if not written or not any(look_up(found, row["keys"]) is not None for row in document["fields"]):
        return
    name = next((name for _, name in named_classes(found)), class_name(document["references"][0]))
    for row in document["fields"]:
        if row["kind"] == "count" and look_up(found, row["keys"]) is None:
            yield f"the config has no '{row['keys'][0]}': {sizes_of(program, found)[row['letter']]} is the default of {name}"


def census_of(document: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The census of a class of a program, of the first without a name; None if it has none."""
    census = document.get("census") or {}
    found: Mapping[str, Any] | None = census.get(name) if name else next(iter(census.values()), None)
    return found


def unread(program: Stored, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys of a config that neither the spec nor its class knows, by path, with their values.

    Only configs inside of the config are entered of which the spec reads a field.
    """
    document = program.document
    described = set(keys_of(document))
    name = next((name for _, name in named_classes(config)), "")
    census = census_of(document, name) or {}
    known = described | {path for kind in ("described", "free", "guarded", "words") for path in census.get(kind, ())}
    for table in (document.get("reading") or {}).get("tables", {}).values():
        known |= set(_names(table, ""))
    parts = {key[:place] for key in known for place, letter in enumerate(key) if letter == "."}
    yield from _unread(config, "", known, parts)


def keys_of(document: Mapping[str, Any]) -> list[str]:
    """The keys that a program describes, those of parts that a regime leaves out too."""
    left_out = [row for regime in document["regimes"] for row in regime.get("left_out", ())]
    return [key for row in (*document["fields"], *left_out) for key in row["keys"]]


def _names(table: Mapping[str, Any], place: str) -> Iterator[str]:
    """The keys that the reading of a class knows: other names of fields, and fields around an inner config."""
    for name, others in table.get("names", {}).items():
        yield from (place + key for key in (name, *others))
    for name, inner in table.get("parts", {}).items():
        yield from (place + key for key in (name, *inner.get("flat", ())))
        yield from _names(inner, f"{place}{name}.")


def _unread(config: Mapping[str, Any], place: str, known: set[str], parts: set[str]) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        path = f"{place}{key}"
        if path in parts and isinstance(value, dict):
            yield from _unread(value, f"{path}.", known, parts)
        elif path not in known and path not in parts and key not in EVERYWHERE and not key.startswith("_"):
            yield path, value


def check_unread(program: Stored, config: Mapping[str, Any], strict: bool = False) -> list[str]:
    """Check the keys that neither the spec nor the class of a config knows.

    Returns:
        A line for each such key, with the nearest key that is known.

    Raises:
        ConfigError: one resembles a described key that the config lacks; or, if ``strict``, there is one.
    """
    found = as_read(program.document, config)
    keys = keys_of(program.document)
    absent = [key for key in keys if look_up(found, [key]) is None]
    lines = []
    for path, _ in unread(program, found):
        near = nearest(path, absent, ALIKE)
        if near and misspelt(path, near):
            raise ConfigError(f"the config has '{path}', which nothing reads, and no '{near}': is it misspelt?")
        like = nearest(path, keys, 0.7)
        lines.append(f"nothing reads the config's '{path}'" + (f"; there is '{like}'" if like else ""))
    if strict and lines:
        raise ConfigError(f"{lines[0]} (--strict)" if len(lines) == 1 else f"{lines[0]}, and {len(lines) - 1} more (--strict)")
    return lines


def check_numbers(program: Stored, config: Mapping[str, Any]) -> None:
    """Refuse a config that names no class, and has a number that neither the spec nor its class reads.

    Token ids decide nothing, and neither do limits of lengths if the spec reads none, or the config has those that it reads.

    Raises:
        ConfigError: the message has the number, and the nearest key that is known.
    """
    found = as_read(program.document, config)
    keys = keys_of(program.document)
    absent = [key for key in keys if look_up(found, [key]) is None]
    limited = any(map(is_limit, absent))
    numbers = [row for path, value in unread(program, found) for row in numbers_in(path, value)]
    numbers = [(path, number) for path, number in numbers if not is_id(path) and (limited or not is_limit(path))]
    if numbers:
        path, number = numbers[0]
        near = stands_for(path, absent, is_limit(path)) or stands_for(path, keys, is_limit(path))
        told = f"the config names no class, and nothing reads its '{path}' ({number!r})"
        told += f", nor {len(numbers) - 1} more numbers" if len(numbers) > 1 else ""
        like = f"the nearest key of '{program.name}' is '{near}'; " if near else ""
        raise ConfigError(f"{told}: {like}name its class under 'architectures', or the spec, to leave it unread (--lenient)")


def stands_for(path: str, keys: Sequence[str], limit: bool) -> str:
    """The key that a key of another library most likely stands for: a limit for one, else one with a word in common."""
    words = {word.rstrip("s") for word in path.rpartition(".")[2].split("_")} - {"n", "num"}
    pool = [key for key in keys if is_limit(key) == limit]
    shared = [key for key in pool if words & {word.rstrip("s") for word in key.rpartition(".")[2].split("_")}]
    place, _, word = path.rpartition(".")
    return nearest(path, shared or pool, 0.3) or (nearest(word, shared or pool, 0.3) if place else "")


def numbers_in(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The numbers in the value at a path that may be sizes, each with its path."""
    if isinstance(value, dict):
        inner = [key for key in value if key not in EVERYWHERE and not key.startswith("_")]
        yield from (row for key in inner for row in numbers_in(f"{path}.{key}", value[key]))
    elif may_be_size(value):
        yield path, value


def may_be_size(value: Any) -> bool:
    """Whether a value is a positive whole number, a larger one with a point, a text that begins with one, or has one in it."""
    if isinstance(value, (list, tuple, dict)):
        return any(map(may_be_size, value.values() if isinstance(value, dict) else value))
    if isinstance(value, str):
        digits = value.strip()[:1]
        return digits.isdecimal() and digits != "0"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and value >= (1 if isinstance(value, int) else FACTOR)


def is_id(path: str) -> bool:
    """Whether a key holds ids of tokens.

    >>> [is_id(key) for key in ("eos_token_id", "image_token_index", "layer_ids", "num_ids")]
    [True, True, False, False]
    """
    *before, last = path.rpartition(".")[2].split("_")
    return last in IDS[0] and not IDS[1].isdisjoint(before)


def is_limit(path: str) -> bool:
    """Whether a key limits lengths.

    >>> [is_limit(key) for key in ("max_seq_len", "n_ctx", "max_position_embeddings", "max_layers", "num_tokens")]
    [True, True, True, False, False]
    """
    words = set(path.rpartition(".")[2].split("_"))
    return not words.isdisjoint(LIMITS[0]) and words <= LIMITS[0] | LIMITS[1]


def misspelt(given: str, known: str) -> bool:
    """Whether two alike keys differ inside of long words: ``v_head_dim`` and ``q_lora_rank`` are no slips of others."""
    pairs = list(zip(given.split("_"), known.split("_"), strict=False))
    same = given.count("_") == known.count("_")
    return same and all(one == other or min(len(one), len(other)) >= SHORT for one, other in pairs)


def nearest(path: str, keys: Sequence[str], cutoff: float) -> str:
    """The key of the same inner config whose last word is the most alike; empty if none is as alike as ``cutoff``."""
    place, _, word = path.rpartition(".")
    beside = [key.rpartition(".")[2] for key in keys if key.rpartition(".")[0] == place]
    found = close_to(word, beside, 1, cutoff)
    return ".".join(filter(None, (place, *found))) if found else ""


def grade_of(found: Mapping[str, Any]) -> str:
    """The grade of evidence and its reason, for people."""
    return f"{found['grade']} ({found['why']})" if found["why"] else str(found["grade"])


def summary(found: Mapping[str, Any]) -> list[str]:
    """Evidence in two lines, for people."""
    kind = found["class"] or "no library class"
    by = {None: "the spec's first", "model_type": "as the model type says"}.get(found["named_by"], f"by {found['named_by']}")
    census = found["census"]
    counts = "no census"
    if census:
        counts = "census: {described} fields described, {free} without effect, {guarded} guarded".format_map(census)
    first = f"evidence: {grade_of(found)}; {kind} ({by}); {found['records']} measured records; {counts}"
    rest = [f"{len(found['read'])} fields read", f"{len(found['defaulted'])} by default"]
    if found["defaulted"]:
        rest[-1] += f" ({shortened(found['defaulted'])})"
    if found["unread"]:
        rest.append(f"{len(found['unread'])} unread ({shortened(found['unread'])})")
    more = [f"  the convention makes an exception for this class: {found['exception']}"] if found.get("exception") else []
    return [first, f"  {', '.join(rest)}", *more]


def shortened(names: list[str], most: int = 4) -> str:
    """The first few of some names."""
    return ", ".join(cut(name, LONGEST_KEY) for name in names[:most]) + (", ..." if len(names) > most else "")
