"""The model that a command line or the arguments of a function select: its spec, its config, and an estimator."""

from __future__ import annotations

import os

from symflops.evaluate.batch_text import batch_of
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.unread import check_unread
from symflops.library.lookup import by_config, by_name, config_of, interpreted, interpreter, is_file, read_config, result, warn
from symflops.library.names import Named, is_config, named
from symflops.library.settings import changed, settings_in
from symflops.support.errors import SymflopsError, kind_of

__all__ = ["Named", "estimate", "estimator_for", "estimator_of", "load", "named", "resolve", "selected"]

HEAD = "head"
"""The stream of the tokens on which a head runs."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from symflops.api import Model
    from symflops.evaluate.estimate import Estimate


def resolve(args: Any) -> str:
    """Replace the words for models of a command line by names of specs, and set the config that they imply.

    Changes ``args`` in place: ``asked`` becomes the model's name for headings, and ``named`` the results for several words.
    Returns a note for the user, or an empty text.

    Raises:
        SymflopsError: as :func:`named`; a config is given twice; or ``--set`` names no field.
    """
    settings, lenient = settings_in(getattr(args, "set", None) or ()), getattr(args, "lenient", False)
    for option in ("specs", "spec"):
        if isinstance(words := getattr(args, option, None), list) and (option == "specs" or len(words) > 1):
            args.named = [named(word) for word in words]
            setattr(args, option, [found.spec for found in args.named])
    given, word = getattr(args, "config", None), getattr(args, "spec", None)
    if isinstance(given, str) and not is_config(given):
        given = args.config = config_named(given)
    if isinstance(word, list):
        return _resolve_several(args, word)
    if isinstance(word, str):
        found = named(word, lenient)
    elif hasattr(args, "spec") and given and (lenient or settings) and not getattr(args, "trace", False):
        found = Named(by_config(read_config(given), lenient)[1])
    else:
        return ""
    args.spec, args.asked = found.spec, heading(found.called(bool(given)), getattr(args, "set", None) or ())
    if not hasattr(args, "config"):
        return ""
    if given and found.whole:
        raise SymflopsError(f"'{word}' is a config already: leave out --config, or name '{args.spec}' with it")
    if found.config or settings:
        args.config = {**(read_config(given) if given else {}), **found.config}
    if settings:
        args.config = changed(args.spec, args.config, settings)
    counts = hasattr(args, "batch") or getattr(args, "numeric", False)
    silent = getattr(args, "json", False) and found.defaults  # its output names the class
    return found.note if counts and not given and not silent else ""


def _resolve_several(args: Any, words: list[str]) -> str:
    """Resolve a list of words in ``args.spec``; only a single word also sets the config."""
    if len(words) > 1:
        return ""
    args.spec = words[0]
    note = resolve(args)
    args.spec = [args.spec]
    return note


def config_named(word: str) -> dict[str, Any]:
    """Return the config of a published model, by its name.

    Raises:
        SymflopsError: there is no such model, and no such file.
    """
    found = named(word)
    if not found.whole:
        raise SymflopsError(
            f"--config is a path, JSON or a published model; '{word}' is the spec '{found.spec}', which has none"
        )
    return dict(found.config)


def heading(asked: str, settings: Sequence[str]) -> str:
    """Return the name of a model for headings, with the settings that change it."""
    return f"{asked} with {', '.join(settings)}" if settings else asked


def written(settings: Mapping[str, Any] | None) -> list[str]:
    """Write settings as on a command line.

    Raises:
        SymflopsError: they are not a mapping.
    """
    if settings is None:
        return []
    if not hasattr(settings, "items") or not all(isinstance(name, str) for name in settings):
        raise SymflopsError(f"settings map fields to values, e.g. {{'num_hidden_layers': 40}}, not {kind_of(settings)}")
    return [f"{name}={value}" for name, value in settings.items()]


def selected(
    model: Any, config: Any = None, spec: str | None = None, settings: Mapping[str, Any] | None = None, lenient: bool = False
) -> Named:
    """Return the spec and config of a model, given by a name, a path, a config, or a config object.

    ``config`` is the config of a model that is given by a name, ``spec`` a name to read ``model`` with. ``settings`` change
    fields of the config; inner fields have dots in their names.

    Raises:
        SymflopsError: as :func:`named`; a config is given twice; or a setting names no field.
    """
    if spec is not None and not isinstance(spec, (str, os.PathLike)):
        raise SymflopsError(f"a spec is a name or a path, not {kind_of(spec)}")
    if isinstance(model, (str, os.PathLike)) and spec is None:
        word, found = os.fspath(model), named(os.fspath(model), lenient)
        if config is not None and found.whole:
            raise SymflopsError(f"'{word}' is a config already: leave out 'config', or name '{found.spec}' with it")
        if config is not None:
            found.note, found.config = "", config_of(config) | found.config
    else:
        given = config_named(model) if isinstance(model, str) and not is_config(model) else config_of(model)
        found = Named(by_config(given, lenient)[1]) if spec is None else named(os.fspath(spec))
        found.note, found.config = "", given | found.config
    found.asked = heading(found.called(config is not None), written(settings)) if found.asked or settings else ""
    found.config = changed(found.spec, found.config, settings or {})
    return found


def estimator_for(
    found: Named,
    regime: str = "full",
    convention: Any = "symflops",
    tell: Callable[[str], object] | None = None,
    strict: bool = False,
) -> InterpretedEstimator:
    """Create the estimator of a selected model; the arguments are those of :func:`symflops.library.lookup.interpreted`."""
    if is_file(found.spec):
        model = interpreter(found.spec, found.config, regime, convention)
        for line in check_unread(model.stored, found.config, strict):
            (tell or (lambda text: warn(text, 5)))(line)
    else:
        model = interpreted(by_name(found.spec), found.spec, found.config, regime, convention, tell, strict)
    model.asked = found.asked
    return model


def estimator_of(
    model: Any,
    config: Any = None,
    regime: str | None = None,
    convention: str | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    spec: str | None = None,
    lenient: bool = False,
    strict: bool = False,
) -> InterpretedEstimator:
    """Create an estimator from anything that selects a model: also from a loaded spec, or from an estimator.

    ``spec`` and ``lenient`` are those of :func:`selected`, ``strict`` that of :func:`estimator_for`.

    Raises:
        SymflopsError: as :func:`selected` and :func:`estimator_for`.
    """
    if isinstance(model, InterpretedEstimator):
        wanted, origin = (regime or model.regime, convention or model.convention), model.path or model.name
        if wanted == (model.regime, model.convention) and not settings:
            return model
        made = interpreter(origin, changed(origin, model.config, settings or {}), *wanted)
        made.asked = heading(model.asked or model.name, written(settings))
        return made
    regime, convention = regime or "full", convention or "symflops"
    if hasattr(model, "spec") and hasattr(model, "estimator"):  # a symflops.Model, whose type imports sympy
        given = model.config if config is None else config_of(config)
        return model.estimator(changed(model, given, settings or {}), regime, convention)  # type: ignore[no-any-return]
    found = selected(model, config, spec, settings, lenient)
    if found.note:
        warn(found.note, 4)
    return estimator_for(found, regime, convention, None, strict)


def estimate(
    config: Any,
    batch: Mapping[str, Any] | str,
    *,
    regime: str | None = None,
    convention: str | None = None,
    spec: str | None = None,
    strict: bool = False,
    lenient: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Estimate:
    """Return parameters and FLOPs of one step on a batch, as ``symflops estimate --json`` prints them.

    The arguments are those of :func:`symflops.estimate`.

    Raises:
        SymflopsError: as :func:`symflops.estimate`.
    """
    options: dict[str, Any] = {"spec": spec, "strict": strict, "lenient": lenient}
    model = estimator_of(config, None, regime, convention, settings, **options)
    batch = batch_for(model, batch)
    if lacks_head(model, batch):
        model = estimator_of(config, None, given_head(regime or model.regime), convention, settings, **options)
    return answered(model, batch)


def lacks_head(model: InterpretedEstimator, batch: Any) -> bool:
    """Whether ``batch`` says on how many tokens the head runs, and the regime of ``model`` runs it on all."""
    return hasattr(batch, "items") and HEAD in batch and HEAD not in model.streams


def batch_for(model: InterpretedEstimator, batch: Mapping[str, Any] | str) -> Mapping[str, Any]:
    """Return a batch, read for a model if it is a text such as ``8192*8``, as on a command line, but from no file.

    Raises:
        SymflopsError: the text is no batch.
    """
    if isinstance(batch, str) and batch.lstrip().startswith("@"):
        raise SymflopsError("only a command line takes a batch from a file: read it")
    return batch_of(batch, model.stored.streams) if isinstance(batch, str) else batch


def answered(model: InterpretedEstimator, batch: Mapping[str, Any] | str) -> Estimate:
    """Estimate a batch; the notes are also warnings, of the caller of the caller."""
    found = result(model, batch_for(model, batch))
    for note in found["notes"]:
        warn(note, 4)
    return found


def given_head(regime: Any) -> Any:
    """``regime`` whose batches have a stream ``head``: the number of tokens on which the head runs."""
    if isinstance(regime, str) and not is_file(regime) and not regime.startswith("{"):
        return f"{regime}{',' if ':' in regime else ':'}{HEAD}=given"
    from dataclasses import replace

    from symflops.api import regime_of

    return replace(regime_of(regime), head="given")


def with_head(args: Any, batch: Mapping[str, Any]) -> Any:
    """The regime of a command line, as :func:`given_head` changes it if ``batch`` has a ``head`` that no spec declares."""
    spec = getattr(args, "spec", None)
    known = load(spec).spec.streams if HEAD in batch and isinstance(spec, str) and is_file(spec) else ()
    return given_head(args.regime) if HEAD in batch and all(one.name.text != HEAD for one in known) else args.regime


def load(spec: Any) -> Model:
    """Load a spec by its name or path, or by the name of a class, a variant or a published model that it describes.

    The name of a published model also gives ``config``, for :meth:`symflops.Model.estimator`.

    Raises:
        SymflopsError: there is no such spec, or the file breaks the format of specs.
    """
    from symflops.api import load as loaded

    if not isinstance(spec, (str, os.PathLike)) and not hasattr(spec, "reading_path"):
        raise SymflopsError(f"a spec is a name or a path, not {kind_of(spec)}")
    if not isinstance(spec, str):
        return loaded(spec)
    found = named(spec)
    model = loaded(found.spec)
    model.config.update(found.config)
    return model
