"""Samples: runs of a subject in other states, and families of samples of equal structure.

The runner also finds which numbers of the subject can be varied. Before sampling, the subject's number of levels and the
length of its inputs are adjusted.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.fold.fold import with_folded_lists
from symflops.draft.trace.lowering import steps_of
from symflops.draft.trace.steps import Branch, Loop, Plan, Ref, Step, Subject, Tape, full_config, parameters_of, walk
from symflops.draft.trace.tape import taped
from symflops.draft.vary.explore import Explorer
from symflops.draft.vary.slots import Slot, applied, is_whole, slots_of
from symflops.draft.vary.variables import Moves, State, Variable, moved
from symflops.training.introspect.tree import starred
from symflops.verify.classes import plain_lists, referenced
from symflops.verify.limits import attempt


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of the module.

    Attributes:
        state: The changed numbers of config and inputs (slot -> value).
        plan: The traced steps, with module lists folded into loops.
        config: Field -> value, for all fields of the config.
        variable: The position, among all variables, of the only one that differs from the base sample; -1 if several do.
    """

    state: State
    plan: Plan
    config: Mapping[str, Any]
    variable: int = -1


@dataclass
class Family:
    """Samples (runs with other configs and inputs) of equal structure; the first one is the base.

    Attributes:
        samples: The samples.
        refused: The number of further samples with another structure.
        structural: Variables that cannot change without changing the structure.
        unfinished: Whether time was up before all variables were tried.
        parts: Position in the plan (path of indices) -> the step, loop or branch there in each sample.
        place: ``id`` of a step, loop or branch of the base -> its position in the plan.
        names: For each sample, base parameter name -> name in the sample.
    """

    samples: list[Sample]
    refused: int = 0
    structural: list[Variable] = field(default_factory=list)
    unfinished: bool = False
    parts: dict[Any, list[Any]] = field(default_factory=dict)
    place: dict[int, tuple[int, ...]] = field(default_factory=dict)
    names: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place = {id(part): place for place, part in walk(self.samples[0].plan.entries)}
        for sample in self.samples:
            called: dict[str, str] = {}
            for key, part in walk(sample.plan.entries):
                self.parts.setdefault(key, []).append(part)
                if isinstance(part, Step):
                    called.update(zip(parameters_of(self.parts[key][0]), parameters_of(part), strict=True))
            self.names.append(called)

    def numbers(self, part: Any, pick: Callable[[Any], int]) -> tuple[int, ...]:
        """Vector of the number that ``pick`` reads from a step, loop or branch.

        ``part`` is that of the base; other samples have theirs at the same position.
        """
        return tuple(pick(one) for one in self.parts[self.place[id(part)]])

    def shape(self, name: str) -> tuple[tuple[int, ...], ...]:
        """Shape of a parameter of the base: a vector for each dimension; empty if samples differ in their number.

        In a sample whose module list has other items, it is that of the parameter in the same position of the plan. A sample
        without the parameter counts with the base's shape.
        """
        base = self.samples[0].plan.parameters[name]
        shapes = [
            sample.plan.parameters.get(called.get(name, name), base)
            for sample, called in zip(self.samples, self.names, strict=True)
        ]
        return tuple(zip(*shapes, strict=True)) if all(len(shape) == len(base) for shape in shapes) else ()

    def items(self) -> dict[str, tuple[int, ...]]:
        """Path of an item of a module list in the base -> vector of the item's index, for items where it varies."""
        found: dict[str, tuple[int, ...]] = {}
        for name in self.names[0]:
            words = [called.get(name, name).split(".") for called in self.names]
            for place, word in enumerate(words[0]):
                if word.isdigit() and any(one[place] != word for one in words):
                    found.setdefault(".".join(words[0][: place + 1]), tuple(int(one[place]) for one in words))
        return found


def skeleton(plan: Plan) -> Any:
    """Comparison key of a plan: equal if plans differ in sizes and in indices of modules alone."""
    order: dict[int, int] = {}
    for _, part in walk(plan.entries):
        if isinstance(part, Step):
            order[part.id] = len(order)
        elif isinstance(part, Branch):
            order |= {choice.id: len(order) + place for place, choice in enumerate(part.choices)}
    return (tuple(entry_key(one, order) for one in plan.entries), refs_key(plan.outputs, order))


def entry_key(entry: Any, order: Mapping[int, int]) -> tuple[Any, ...]:
    """Comparison key of a step, loop or branch, without sizes and with stars for the indices of modules.

    ``order`` maps the id of each value to its position in the plan.
    """
    if isinstance(entry, Loop):
        carried = tuple((*refs_key((init,), order), order.get(last, -1)) for init, last in entry.carried)
        body = tuple(entry_key(one, order) for one in entry.body)
        return ("loop", starred(entry.prefix), entry.others, entry.shared, carried, body)
    if isinstance(entry, Branch):
        cases = tuple(tuple(entry_key(one, order) for one in case) for case in entry.cases)
        return ("branch", cases, tuple(refs_key(choice.sources, order) for choice in entry.choices))
    names = tuple(map(starred, entry.parameters))
    words = tuple(starred(word) if isinstance(word, str) else word for word in entry.words)
    operands = refs_key(entry.operands, order)
    return (entry.kind, starred(entry.path), operands, len(entry.numbers), words, names, entry.quiet)


def refs_key(refs: Iterable[Ref], order: Mapping[int, int]) -> tuple[Any, ...]:
    """Comparison key of references, with stars for indices in names.

    ``order`` maps the id of each value to its position in the plan.
    """
    return tuple((ref.kind, order.get(ref.id, -1), starred(ref.name)) for ref in refs)


def executed(entries: Any) -> int:
    """Number of steps and branches that run, each counted once per iteration of the loops around it."""
    return sum(one.count * executed(one.body) if isinstance(one, Loop) else 1 for one in entries)


SLOWER = 8.0  # times the first run: a slower state counts as rejected
RUNS_PER_COLLECTION = 20
IGNORED = ("token_id", "token_index", "seed", "pad_", "_id")
CHUNKS = 8
FEWEST_IN_CHUNK = 16


@dataclass
class Runner:
    """Traces a module in other states (changed numbers of its config and inputs), within a deadline.

    Attributes:
        subject: The class, its config and its inputs.
        deadline: When to stop, as processor time of the process.
        tell: Receives progress messages.
        seconds: Least time limit of a run, in seconds.
        runs: The number of runs so far.
        longest: Duration of the first run, in seconds.
        lists: :func:`key_of` a state that was run -> path of a module list -> its length.
        samples: :func:`key_of` a state -> its sample, None if the module rejected the state.
    """

    subject: Subject
    deadline: float
    tell: Callable[[str], None]
    seconds: float = 6.0
    runs: int = 0
    longest: float = 0.0
    lists: dict[Any, dict[str, int]] = field(default_factory=dict)
    samples: dict[Any, Sample | None] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """Largest factor by which a number may grow: more on the meta device, where tensors take no memory."""
        return 40 if self.subject.device == "meta" else 4

    def late(self) -> bool:
        """Whether the deadline has passed."""
        return time.process_time() > self.deadline

    def at(self, state: Mapping[Slot, int]) -> Subject:
        """Subject with the config and inputs as changed by ``state`` (slot -> value)."""
        return self.subject.having(*applied(self.subject.config, self.subject.inputs, state))

    def taped(self, state: Mapping[Slot, int]) -> tuple[Tape, Mapping[str, Any]] | None:
        """(Tape, complete config) in a state (slot -> value); None if the module rejects it or is too slow."""
        self.runs += 1
        if self.runs % RUNS_PER_COLLECTION == 0:
            gc.collect()
        subject = self.at(state)
        started = time.process_time()

        def run() -> tuple[Tape, Mapping[str, Any]]:
            model, _, tape = taped(subject)
            return tape, full_config(model, subject.config)

        found = attempt(run, max(self.seconds, SLOWER * self.longest))
        if found is not None:
            self.longest = self.longest or time.process_time() - started
        return found

    def signature(self, state: State) -> Any:
        """(Parameters with shapes, contractions with sizes) in a state; None if the module rejects it.

        Two states with equal signatures run the same work.
        """
        found = self.taped(state)
        if found is None:
            return None
        tape = found[0]
        self.lists[key_of(state)] = list_lengths(tape.parameters)
        return (tuple(tape.parameters.items()), tuple((node.kind, node.path, node.sizes) for node in tape.nodes if node.sizes))

    def sample(self, state: State | None, variable: int = -1) -> Sample | None:
        """Run the module in a state, and return the sample: state, folded plan and complete config.

        A state (slot -> value) is run once. ``variable`` is the position, among all variables, of the only one that differs
        from the base; -1 if several do. None if the state is None or the module rejects it.
        """
        if state is None:
            return None
        key = key_of(state)
        if key not in self.samples:
            found = self.taped(state)
            self.samples[key] = (
                None if found is None else Sample(state, with_folded_lists(steps_of(found[0])), found[1], variable)
            )
        return self.samples[key]

    def moved(self, base: Sample, variable: Variable, value: int, number: int = -1) -> Sample | None:
        """Sample like ``base`` with another value of one variable; None if the module rejects it.

        ``number`` is the position of the variable among all variables.
        """
        return self.sample(moved(base.state, [(variable, value)]), number)


def key_of(state: Mapping[Slot, int]) -> tuple[str, ...]:
    """Hashable key of a state: sorted texts, one for each slot whose value is not that as given."""
    return tuple(sorted(repr((slot.side, slot.key, value)) for slot, value in state.items() if value != slot.value))


def list_lengths(parameters: Mapping[str, Any]) -> dict[str, int]:
    """Path of a module list -> number of its items that have parameters, from the names of parameters."""
    found: dict[str, set[str]] = {}
    for name in parameters:
        words = name.split(".")
        for place, word in enumerate(words):
            if word.isdigit():
                found.setdefault(".".join(words[:place]), set()).add(word)
    return {name: len(items) for name, items in found.items()}


def explored(runner: Runner) -> Moves:
    """Find which slots (numbers of the config and inputs) can be varied, alone or with others.

    The subject must run as given.
    """
    subject = runner.subject
    given = [slot for slot in slots_of(subject.config, subject.inputs) if not ignored(str(slot.key[-1]))]
    base = runner.taped({})
    assert base is not None
    hidden = renamed_fields(subject)
    filled = [slot for slot in defaults(base[1], subject.config) if slot.key[0] not in hidden]
    # no size of a spec is read from a list within a list
    deep = [slot for slot in given if slot.of_config and sum(isinstance(part, int) for part in slot.key) > 1]
    slots = [*(slot for slot in given if slot not in deep), *filled]
    moves = Moves(filled=set(filled))
    Explorer(runner.signature, slots, runner.signature({}), runner.late, runner.tell, moves).run()
    moves.stuck += [slot for slot in deep if slot.kind == "number"]
    return moves


def renamed_fields(subject: Subject) -> set[str]:
    """Both names of each given config field that has an alias in the config class."""
    renamed = getattr(getattr(referenced(subject.reference), "config_class", None), "attribute_map", {})
    return {name for pair in renamed.items() for name in pair if set(pair) & set(subject.config)}


def ignored(name: str) -> bool:
    """Whether a field's name suggests an index or a seed rather than a size."""
    return any(word in name for word in IGNORED)


def defaults(config: Mapping[str, Any], given: Mapping[str, Any], key: tuple[str, ...] = ()) -> Iterator[Slot]:
    """Slots of positive integers in the complete ``config`` that ``given`` lacks, sub-configs included."""
    for name, value in config.items():
        if isinstance(value, Mapping) and isinstance(given.get(name), Mapping):
            yield from defaults(value, given[name], (*key, name))
        elif is_whole(value) and value > 0 and name not in given and not ignored(name) and not name.startswith("_"):
            yield Slot("config", (*key, name), value)


def with_published_levels(subject: Subject, published: Sequence[Subject]) -> Subject:
    """The first published subject if its per-level lists have another length, else ``subject`` itself.

    Per-level lists are two or more lists that share one length in the subject and another one in the published config. A
    published config that does not build is ignored here, and fails in its proof.
    """
    if not published or subject.device != "meta":
        return subject
    configs = attempt(lambda: [full_config(one.build(), one.config) for one in (subject, published[0])])
    if configs is None:
        return subject
    own, other = configs
    lengths = [(len(own[name]), len(other[name])) for name in subject.config if is_list(own, name) and is_list(other, name)]
    changed = [pair for pair in lengths if pair[0] != pair[1]]
    if len(changed) < 2 or len(set(changed)) > 1:
        return subject
    config = {**{name: plain_lists(other[name]) for name in subject.config if name in other}, **published[0].config}
    return published[0].having(config, published[0].inputs)


def is_list(config: Mapping[str, Any], name: str) -> bool:
    """Whether field ``name`` is a nonempty list without floats, and so may be a per-level list."""
    value = config.get(name)
    return isinstance(value, (list, tuple)) and bool(value) and not any(isinstance(item, float) for item in value)


def with_longer_inputs(subject: Subject) -> Subject:
    """Subject with inputs longer than a chunk, if its module pads shorter ones to one; else ``subject``."""
    slots = slots_of(subject.config, subject.inputs)
    lengths = [slot for slot in slots if slot.kind == "dimension" and slot.key[-1] == 1]
    if not lengths or len({slot.value for slot in lengths}) > 1:
        return subject
    chunks = {size for size in square_sides(subject) if size >= FEWEST_IN_CHUNK} - {slot.value for slot in slots}
    longer = [size for size in chunks if size > lengths[0].value]
    if len(longer) != 1:
        return subject
    found = subject.having(*applied(subject.config, subject.inputs, dict.fromkeys(lengths, CHUNKS * longer[0])))
    return found if longer[0] in square_sides(found) else subject


def square_sides(subject: Subject) -> set[int]:
    """Sizes n of the products with an n x n result of two values, such as attention scores in a chunk.

    Empty if the module does not run.
    """
    found = attempt(lambda: taped(subject)[2].nodes)
    nodes = found or []
    parameters = {node.id for node in nodes if node.kind == "parameter"}
    return {
        node.sizes[1]
        for node in nodes
        if node.kind == "matmul" and node.sizes[1] == node.sizes[3] and not parameters & set(node.operands[:2])
    }
