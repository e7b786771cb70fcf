"""Faults seeded into the package, each of which a generated case must find: what the agreement with the oracle is worth."""

from __future__ import annotations

import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML
from sympy.core.cache import clear_cache

from tests.sampling import amount, sampled

from .interpreter import Result, run
from .package import CONVENTIONS, SymflopsError, interpreted, program_of
from .specs import Case, make_case

Fault = Callable[[pytest.MonkeyPatch], None]
SEEDS = range(400)  # negative ones are written by hand
CLEAN = amount(100, 400)
NEEDS, LIVES, ITERATIONS = "symflops.derive.analyses", "symflops.derive.analyses", "symflops.derive.iterations"
DERIVE, LOWER = "symflops.derive.derive", "symflops.lower.lower"
AMOUNTS, MOMENTS = "symflops.lower.moments:Amounts", "symflops.lower.moments:Moments"
COPIES, PARAMETERS = "symflops.derive.analyses:Copies", "symflops.lower.inputs:Parameters.measure"
TRUTH, SPARSE, POLYNOMIAL = "symflops.formula.truth:Truth", "symflops.formula.sparse:Poly", "symflops.formula.polynomial"


def edit(name: str, old: str, new: str) -> Fault:
    """The fault of one place of one function: ``old``, which must be in its source once, becomes ``new``."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        module = sys.modules[name.partition(":")[0]]
        path, _, last = name.partition(":")[2].rpartition(".")
        owner: Any = pkgutil.resolve_name(f"{module.__name__}:{path}") if path else module
        original = vars(owner)[last]
        source = textwrap.dedent(inspect.getsource(getattr(original, "fget", None) or getattr(original, "__func__", original)))
        assert source.count(old) == 1, f"'{old}' is {source.count(old)} times in {name}: the fault has to be written anew"
        made: dict[str, Any] = {}
        text = "from __future__ import annotations\n" + source.replace(old, new)
        exec(compile(text, f"<fault in {name}>", "exec"), vars(module), made)  # noqa: S102 - the package's own text
        if path:
            return patch.setattr(owner, last, made[last])
        for user in [item for key, item in sys.modules.items() if key.startswith("symflops.")]:
            if vars(user).get(last) is original:
                patch.setattr(user, last, made[last])
        return None

    return fault


FAULTS: dict[str, Fault] = {
    # which values need a gradient
    "need ignores parameters": edit(f"{NEEDS}:_forwards", "if trains(parameter)", "if False"),
    "need ignores operands": edit(f"{NEEDS}:_forwards", "for operand in node.operands", "for operand in ()"),
    "need flows through a detach": edit(f"{NEEDS}:_forwards", "if node.flows else NO", ""),
    "need of a choice is that of its first value": edit(
        f"{NEEDS}:_forwards", "node.condition.choose(facts.values[node.then], facts.values[node.otherwise])", "facts.values[node.then]"
    ),
    "need of a choice is that of either value": edit(
        f"{NEEDS}:_forwards", "node.condition.choose(facts.values[node.then], facts.values[node.otherwise])",
        "facts.values[node.then] | facts.values[node.otherwise]",
    ),
    "need does not reach the second iteration": edit(
        f"{NEEDS}:_loop_forwards", "inner.values[carry.final]", "inner.values[carry.argument]"
    ),
    "need after a loop is that before it": edit(f"{NEEDS}:_loop_forwards", "trace.after(loop.count)", "first"),
    "need of an operand ignores values": edit(f"{NEEDS}:operand_need", "for value in operand.values", "for value in ()"),
    "need of an operand ignores parameters": edit(
        f"{NEEDS}:operand_need", "for parameter in chosen if", "for parameter in () if"
    ),
    "need of an operand ignores what it is made of": edit(
        f"{NEEDS}:operand_need", "for name in operand.inner", "for name in ()"
    ),
    # which operators the loss depends on
    "live goes through a detach": edit(f"{LIVES}:_backwards", "truth if node.flows else NO", "truth"),
    "live stops at operators without contractions": edit(
        f"{LIVES}:_backwards", "for operand in node.operands", "for operand in node.operands if node.contractions else ()"
    ),
    "live reads the first result only": edit(
        f"{LIVES}:_backwards", "for result in node.results) & node.guard", "for result in node.results[:1]) & node.guard"
    ),
    "live reaches the first operand only": edit(
        f"{LIVES}:_backwards", "for operand in node.operands", "for operand in node.operands[:1]"
    ),
    "live ignores the other value of a choice": edit(f"{LIVES}:_backwards", "truth & ~node.condition", "NO"),
    "live does not reach what a loop captures": edit(
        f"{LIVES}:_loop_backwards", "for value, truth in inner.values.items()", "for value, truth in ()"
    ),
    "live does not reach what a loop starts from": edit(f"{LIVES}:_loop_backwards", "trace.after(loop.count)", "[NO for _ in first]"),
    "live does not reach the iteration before": edit(f"{LIVES}:_loop_backwards", "inner.values.get(carry.argument, NO)", "NO"),
    "live reaches captured values of a loop that never runs": edit(f"{LIVES}:_loop_backwards", "truth & reached", "truth"),
    "live reaches captured values an iteration late": edit(f"{LIVES}:_loop_backwards", "Integer(step + 1)", "Integer(step + 2)"),
    # iterations of loops
    "the facts after a loop are the first ones": edit(
        f"{ITERATIONS}:Trace.after", "return tuple(result)", "return tuple(first)"
    ),
    "the facts after a loop are the last ones": edit(
        f"{ITERATIONS}:Trace.after", "return tuple(result)", "return tuple(self.states[-1])"
    ),
    "the facts after a loop are an iteration late": edit(f"{ITERATIONS}:Trace.after", "start=1", "start=2"),
    "a state lasts until the end": edit(f"{ITERATIONS}:Trace.runs", "((1, step, 1), (-1, step + 1, 1))", "((1, step, 1),)"),
    "every iteration is a later one": edit(f"{ITERATIONS}:_overlap", "Excess(loop.count - first - last)", "loop.count"),
    "a loop may run fewer times than never": edit(
        f"{ITERATIONS}:_overlap", "Excess(loop.count - first - last)", "loop.count - first - last"
    ),
    "classes ignore the first iterations": edit(f"{ITERATIONS}:_overlap", "loop.offset + first,", "loop.offset,"),
    "classes ignore the last iterations": edit(f"{ITERATIONS}:_overlap", "loop.count - last", "loop.count"),
    "alternating iterations ignore the remainder": edit(
        f"{ITERATIONS}:_overlap", "return Excess(FloorDiv(room + step, step))", "return Excess(FloorDiv(room, step))"
    ),
    # what is counted
    "a nested loop is counted once": edit(f"{DERIVE}:_Tally.loop", "times * count,", "count,"),
    "the last visit of a contraction counts alone": edit(
        f"{DERIVE}:_Tally.operator", "_more(entry.forward, times", "_more(ZERO, times"
    ),
    "forward ignores the guard": edit(
        f"{DERIVE}:_Tally.operator", "_more(entry.forward, times, operator.guard)", "_more(entry.forward, times, YES)"
    ),
    "gradients are counted at dead ends": edit(f"{DERIVE}:_Tally.operator", "wanted & alive)", "wanted)"),
    "weight gradients are not counted": edit(
        f"{DERIVE}:_Tally.operator", "wanted & alive)", "NO if operand.is_weight else wanted & alive)"
    ),
    "everything trains": edit(f"{NEEDS}:trainable", "and wanted and not frozen", ""),
    "the loss uses one output": edit(f"{LIVES}:loss_values", "in graph.outputs if", "in graph.outputs[:1] if"),
    # parameters
    "a shared parameter is counted per iteration": edit(
        f"{COPIES}.enter", "for loop, bracket in around if loop.index in indices]", "for loop, bracket in around]"
    ),
    "a parameter of a loop is counted once": edit(
        f"{COPIES}.counts", "Mul(*(self.reads(loop, parameter) for loop in loops))", "Integer(1)"
    ),
    "a parameter of a loop that never runs is counted": edit(
        f"{COPIES}.enter", "exists & Truth.of(AtLeast(count, Integer(1)))", "exists"
    ),
    "a parameter exists as its last reader does": edit(f"{COPIES}.enter", "exists | known.get(within, NO)", "exists"),
    "a parameter exists in one class as in the others": edit(f"{COPIES}.counts", "len(set(exists.values())) == 1", "True"),
    "parameters ignore when they exist": edit(PARAMETERS, " * Polynomial.of(exists)", ""),
    "parameters ignore their copies": edit(PARAMETERS, " * Polynomial.of(entry.copies)", ""),
    # units, extents and moments
    "a multiply-add is one": edit(f"{LOWER}:_Lowering.line", "2 * size[1]", "size[1]"),
    "the fraction of an extent is lost": edit(
        f"{LOWER}:_Lowering.line", "(work.contraction.size, factor *", "(work.contraction.size,"
    ),
    "useful pairs are executed ones": edit(f"{AMOUNTS}.of", "(key[2], key[1])", "(key[1], key[1])"),
    "executed pairs are useful ones": edit(f"{AMOUNTS}.of", "(key[2], key[1])", "(key[2], key[2])"),
    "work is taken over samples": edit(f"{MOMENTS}.vector", "Key(items, monomial, padded", "Key('samples', monomial, padded"),
    "work over images is taken over samples": edit(
        f"{MOMENTS}.vector", "Key(items, monomial, padded", "Key('samples' if items == 'images' else items, monomial, padded"
    ),
    "work once is taken per sample": edit(
        f"{MOMENTS}.vector", "Key(items, monomial, padded", "Key('samples' if items == 'once' else items, monomial, padded"
    ),
    "a causal mask leaves the diagonal out": edit("symflops.formula.masks:triangle", "length + 1", "length - 1"),
    "a causal mask starts at the first key": edit("symflops.formula.masks:causal", "triangle(Excess(keys - queries))", "0"),
    # algebra
    "or adds": edit(f"{TRUTH}.__or__", ".plus(self & other, -1)", ""),
    "and of sums keeps one product": edit("symflops.formula.truth:_both", "terms.get(product, 0) + a * b", "a * b"),
    "not is yes": edit(f"{TRUTH}.__invert__", "YES.plus(self, -1)", "YES"),
    "a choice forgets what is otherwise": edit(f"{TRUTH}.choose", ".plus(~self & otherwise)", ""),
    "of two bounds the lower holds": edit("symflops.formula.truth:join", "max(bounds", "min(bounds"),
    "a product of sums keeps one term": edit(f"{SPARSE}.__mul__", "terms.get(monomial, 0) + a * b", "a * b"),
    "a sum keeps one term": edit(f"{SPARSE}.summed", "terms.get(monomial, 0) + factor", "factor"),
    "squares are lost": edit(f"{POLYNOMIAL}:Polynomial.product", "1 if is_bracket(a) else e", "1"),
    "a bracket is absorbed by a wider count": edit(f"{POLYNOMIAL}:_implies", "slack >= 0", "slack >= -1"),
    "common factors are lost": edit(
        "symflops.formula.factoring:FormulaWriter.group", "Prod((*factors_of(outside), rest))", "rest"
    ),
}

# the first seed that finds a fault which the first few do not
# fmt: off
WITNESSES: dict[str, int] = {
    "a bracket is absorbed by a wider count": -4,
    "need flows through a detach": 179, "need of a choice is that of its first value": 244,
    "need of a choice is that of either value": -1, "need after a loop is that before it": 69,
    "live ignores the other value of a choice": 98, "live does not reach what a loop captures": 94,
    "live reaches captured values of a loop that never runs": 549, "live reaches captured values an iteration late": 117,
    "the facts after a loop are the last ones": 52, "a loop may run fewer times than never": 309,
    "classes ignore the first iterations": -2, "classes ignore the last iterations": -3,
    "alternating iterations ignore the remainder": 52, "a shared parameter is counted per iteration": 25,
    "a parameter exists as its last reader does": 111, "a parameter exists in one class as in the others": -6, "the fraction of an extent is lost": 37,
    "useful pairs are executed ones": 37, "executed pairs are useful ones": 37, "work is taken over samples": 36,
    "work once is taken per sample": 36, "a causal mask leaves the diagonal out": 37,
    "a causal mask starts at the first key": 37, "or adds": 53, "a choice forgets what is otherwise": 244,
    "of two bounds the lower holds": 25, "a sum keeps one term": 14,
}
# fmt: on

HEAD = """
language: 2
name: small
sizes: {D: D, L: L, n: n, flag: {key: flag, type: bool}, layers: {key: layers, type: list}}
streams: {text: [x]}
inputs: {h: {stream: text, width: D}}
outputs: [h]
graph:
"""
CONFIG = {"D": 3, "L": 4, "n": 1, "flag": True, "layers": [1, 3]}
HAND = (  # what the generator does not write: a detach under a condition, layers of a list, conditions on a count
    """
  - a: {op: linear, from: h, width: D, to: h}
  - d: {op: detach, from: h, to: h, when: flag}
  - b: {op: linear, from: h, width: D, to: h}""",
    """
  - m:
      repeat: L
      index: i
      graph:
        - a: {op: linear, from: h, width: D, to: h}
        - b: {op: linear, from: h, width: D, to: h, when: i in layers}""",
    """
  - p: {op: linear, from: h, width: D, to: v}
  - m:
      repeat: L
      index: i
      graph:
        - a: {op: linear, from: h, with: v, width: D, to: h}
        - b: {op: linear, from: h, width: D, to: v, when: i in layers}""",
    """
  - m: {repeat: n, graph: [{a: {op: linear, from: h, width: D, to: h, when: n >= 2}}]}""",
    """
  - p: {op: linear, from: h, width: D, to: h}
  - m: {repeat: L, index: i, graph: [{a: {op: linear, from: h, width: D, add_to: h, when: i in layers if flag else i < n}}]}""",
    """
  - m:
      repeat: L
      index: i
      graph:
        - a: {op: linear, from: h, width: D, add_to: h, when: i in layers if flag else i < n}
        - b: {op: linear, from: h, width: D, add_to: h, when: not (i in layers) if flag else i >= n}""",
)
ORACLE: dict[int, tuple[Case, dict[str, Result]]] = {}


def expected(seed: int) -> tuple[Case, dict[str, Result]]:
    """A case and the oracle's numbers under each convention."""
    if seed not in ORACLE:
        if seed < 0:
            case = Case(YAML(typ="safe").load(HEAD + HAND[~seed]), CONFIG, {"text": [2, 3]}, ("*",))
        else:
            case = make_case(seed, 2 + seed % 10)
        results = {name: run(case.document, case.config, case.batch, train=case.train, convention=name) for name in CONVENTIONS}
        ORACLE[seed] = case, results
    return ORACLE[seed]


def disagrees(seed: int) -> bool:
    """Whether the package gives other numbers than the oracle, or refuses the case."""
    case, results = expected(seed)
    try:
        program = program_of(case)
        return any(interpreted(program, case, name) != result for name, result in results.items())
    except (SymflopsError, KeyError):  # refuses it, or asks an index set for another one's lengths
        return True


@pytest.fixture
def cold() -> Iterator[None]:
    """sympy remembers results: none may survive a fault."""
    clear_cache()
    yield
    clear_cache()


@pytest.mark.parametrize("name", sampled(list(FAULTS), 8, 1))
def test_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch, cold: None) -> None:
    """The case that is known to find the fault does, or another one: the generator may have changed since."""
    FAULTS[name](monkeypatch)
    first = [WITNESSES[name]] if name in WITNESSES else []
    assert any(disagrees(seed) for seed in (*first, *SEEDS)), f"no case finds: {name}"


@pytest.mark.thorough
def test_no_fault_no_disagreement(cold: None) -> None:
    """Without a fault there is nothing to find, so that it was the fault that was found."""
    assert [seed for seed in sorted({*range(CLEAN), *WITNESSES.values()}) if disagrees(seed)] == []
