"""Identifiers: valid names for specs, which also appear in generated code, formulas and file names."""

from __future__ import annotations

import keyword
import re

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}\Z")
MODULE = re.compile(r"[a-z][a-z0-9_]{0,47}\Z")
VARIANT = re.compile(r"[a-z0-9][a-z0-9_]{0,31}\Z")
CONFIG_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*\Z")
CLASS = re.compile(r"[A-Za-z_]\w*((\.[A-Za-z_]\w*)+|(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)\Z", re.ASCII)
LATEX = re.compile(r"[A-Za-z0-9_{}^,' \\]{1,40}\Z")

PROSE = re.compile(r'(?!.*""")[^\x00-\x1f\x7f\x85\u2028\u2029\\]*\Z')
"""Prose that is copied into docstrings and comments: one line that can neither end nor escape them."""
PATH = re.compile(r"[A-Za-z0-9_./*-]*\Z")
"""Characters that a path may contain outside braces."""

YAML_WORDS = frozenset({"on", "off", "yes", "no", "y", "n", "true", "false", "null"})
"""Words that some YAML readers convert; ``y`` and ``n`` stay allowed, as papers use these letters."""


RESERVED = frozenset({"sizes", "pairs", "range", "sum", "max", "min", "len", "zip", "Sizes", "Moments", "Estimator", "Flops"})
"""Names that generated code uses itself."""


def why_not_identifier(text: str) -> str | None:
    """Why ``text`` cannot be a name, or None if it can."""
    if text in RESERVED:
        return f"the generated code uses '{text}' itself"
    if not IDENTIFIER.match(text):
        return "a name has letters, digits and underscores, and starts with a letter"
    if keyword.iskeyword(text):
        return f"'{text}' is a word of Python, which the generated code could not use"
    if text.lower() in YAML_WORDS and len(text) > 1:
        return f"some YAML readers take '{text}' for a truth value"
    return None


def why_not_latex(text: str) -> str | None:
    """Why ``text`` cannot be a symbol in a formula, or None if it can."""
    if not LATEX.match(text):
        return "a symbol has letters, digits, '_', '^', braces and Greek macros"
    macros = set(re.findall(r"\\([A-Za-z]*)", text))
    unknown = macros - GREEK - {"mathrm", "mathit", "mathsf", "tilde", "hat", "bar", "ell"}
    if unknown:
        return f"'\\{sorted(unknown)[0]}' is no symbol"
    return None if text.count("{") == text.count("}") else "the braces do not match"


GREEK = frozenset((
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi",
    "Sigma", "Upsilon", "Phi", "Psi", "Omega",
))  # fmt: skip


def latex_symbol(name: str) -> str:
    r"""A name as a paper prints it: ``D``, ``d_{k}``, ``\alpha``, ``F_{\mathrm{moe}}``."""
    head, _, rest = name.partition("_")
    if not rest and len(head) > 1 and head.lstrip("0123456789"):
        if head in GREEK:
            return f"\\{head}"
        digits = head.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        if digits and len(head) - len(digits) == 1:
            return f"{head[0]}_{{{digits}}}"
        if len(head) == 2:
            return f"{head[0]}_{{{head[1]}}}"
        return f"\\mathit{{{head}}}"
    first = f"\\{head}" if head in GREEK else head if len(head) <= 1 else f"\\mathit{{{head}}}"
    rest = rest.replace("_", ",")
    return first if not rest else f"{first}_{{{rest}}}" if len(rest) == 1 else f"{first}_{{\\mathrm{{{rest}}}}}"
