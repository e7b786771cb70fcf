"""Both passes of a tape equal PyTorch's counter, for any choice of what trains."""

import pytest
import torch
from torch import nn

from symflops.draft.trace import gate
from symflops.draft.trace.tape import record


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 6)


class Plain(Base):
    def forward(self, x):
        return self.b(self.a(x).relu())


class InPlace(Base):
    def forward(self, x):
        kept = torch.zeros(x.shape[0], 8)
        kept[:, :4] = self.a(x)[:, :4]
        return self.b(kept)


class Silent(Base):
    def forward(self, x):
        with torch.no_grad():
            scores = self.b(self.a(x))
        return self.b(self.a(x) * scores.sum())


class Detached(Base):
    def forward(self, x):
        return self.b(self.a(x).detach()) + self.b(self.a(x))


class OfParameters(Base):
    def forward(self, x):
        return x @ (self.b.weight @ self.a.weight)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Custom(Base):
    def forward(self, x):
        return self.b(Doubled.apply(self.a(x)))


class Solved(Base):
    def forward(self, x):
        matrix = self.b(self.a(x))
        return torch.linalg.solve_triangular(
            torch.eye(6) + (matrix.T @ matrix).tril(-1), self.b.weight, upper=False, unitriangular=True
        )


class Recurrent(Base):
    def forward(self, x):
        state = torch.zeros(6, 6)
        for step in range(x.shape[0]):
            state = state @ self.b(self.a(x[step : step + 1])).T @ x[step : step + 1]
        return state


@pytest.mark.parametrize(
    "kind", [Plain, InPlace, Silent, Detached, OfParameters, Custom, Solved, Recurrent], ids=lambda kind: kind.__name__
)
def test_both_passes_equal_the_counter(kind):
    with torch.device("meta"):
        model = kind()
    with torch.device("meta"):
        arguments = {"x": torch.zeros(5, 6)}
        tape = record(model, arguments)
        findings = [one for seed in range(6) for one in gate.check(model, arguments, tape, seed)]
    assert [one for one in findings if not one.equal] == []
    assert any(one.measured for one in findings)


def test_a_tape_that_is_wrong_is_told_with_the_operator():
    with torch.device("meta"):
        model, arguments = Plain(), {"x": torch.zeros(5, 6)}
        tape = record(model, arguments)
        wrong = next(node for node in tape.nodes if node.sizes == (1, 5, 6, 8))
        wrong.sizes = (1, 5, 6, 9)
        finding = next(one for one in gate.check(model, arguments, tape) if not one.equal)
    assert finding.name == "forward"
    assert gate.culprit(tape, finding) is not None
