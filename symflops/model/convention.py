"""A convention as data: which of the derived work counts, and how."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from symflops.model.roles import ROLES


@dataclass(frozen=True, slots=True)
class Backward:
    """What the backward pass costs where it is assumed, as multiples of the forward work.

    ``trained`` for work with weights that train, ``frozen`` for work with others, ``other`` for work without weights, ``idle``
    for work of which no gradient is really computed (as its class where it is None).
    """

    trained: Fraction
    frozen: Fraction
    other: Fraction
    idle: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """How the work of one role counts; what is None is as for all work.

    ``count`` is ``yes``, ``no`` or ``as_matmul``. ``forward`` multiplies the derived work, ``per_element`` stands in its place
    with so many FLOPs per element. ``additions`` are ``exact`` where a sum of n products has n - 1 of them. ``rows`` is a role
    on whose rows it is counted instead of its own, ``backward`` overrides the convention's.
    """

    count: str | None = None
    forward: Fraction | None = None
    per_element: Fraction | None = None
    rows: str | None = None
    backward: Backward | None = None
    additions: str | None = None

    def over(self, other: Rule) -> Rule:
        """This rule where it says something, ``other`` where it does not."""
        return Rule(
            self.count if self.count is not None else other.count,
            self.forward if self.forward is not None else other.forward,
            self.per_element if self.per_element is not None else other.per_element,
            self.rows if self.rows is not None else other.rows,
            self.backward if self.backward is not None else other.backward,
            self.additions if self.additions is not None else other.additions,
        )


@dataclass(frozen=True, slots=True)
class Exceptional:
    """Specs of which a convention says something else, the reason, and the whole convention as it is for them."""

    specs: tuple[str, ...]
    because: str
    convention: Convention


@dataclass(frozen=True, slots=True)
class Convention:
    """What of the derived work is counted.

    ``pairs`` is ``useful`` or ``all`` (masked pairs and padding too) for all masks, ``masks`` for one: ``half``, ``band``,
    ``half_band`` and ``half_within`` as well. ``unseen`` says whether work counts that PyTorch's counter does not see.
    ``length`` is ``real`` or ``padded``, ``lengths`` the same for one class of work (``linear`` or ``attention``). ``counts``
    is ``work``, or ``parameters`` where every parameter counts as one multiply-add per token, in place of the work that reads
    it; ``experts`` is ``active`` or ``all`` then. ``tied`` parameters count ``each`` time they are used, or ``once``.
    """

    name: str
    pairs: str = "useful"
    unseen: bool = True
    length: str = "real"
    doc: str = ""
    unit: str = "flops"
    counts: str = "work"
    experts: str = "active"
    tied: str = "each"
    backward: Backward | None = None
    attention_backward: int = 4
    attention_width: str = "own"
    masks: tuple[tuple[str, str], ...] = ()
    lengths: tuple[tuple[str, str], ...] = ()
    roles: tuple[tuple[str, Rule], ...] = ()
    links: tuple[str, ...] = field(default=(), compare=False)
    exceptions: tuple[Exceptional, ...] = ()

    def of(self, spec: str) -> Convention:
        """What it says of one spec."""
        found = next((exception.convention for exception in self.exceptions if spec in exception.specs), self)
        return replace(found, exceptions=())

    @property
    def is_plain(self) -> bool:
        """Whether it says no more than which pairs, unseen work and lengths count."""
        few = Convention(self.name, self.pairs, self.unseen, self.length, self.doc)
        return self == few

    @property
    def plain(self) -> Convention:
        """What remains to be done when the work that it counts is known: all of it, on its lengths."""
        pairs, unseen = (self.pairs, self.unseen) if self.is_plain else ("useful", True)
        return Convention(self.name, pairs, unseen, self.length, self.doc, self.unit)

    @property
    def elements(self) -> frozenset[str]:
        """The roles of elements that it counts."""
        counted = (name.rpartition(".")[2] for name, rule in self.roles if rule.count not in (None, "no") or rule.per_element)
        return frozenset(name for name in counted if ROLES[name].group == "elements")

    def rule(self, role: str, regions: tuple[str, ...]) -> Rule:
        """How work of a role in some regions counts: the most telling line wins, and what is left out stays out."""
        rules = dict(self.roles)
        found = rules.get(role, Rule())
        for region in regions:
            around = rules.get(region, Rule())
            count = "no" if "no" in (around.count, found.count) else found.count
            found = replace(around.over(found), count=count)
            exact = rules.get(f"{region}.{role}")
            found = exact.over(found) if exact else found
        return found
