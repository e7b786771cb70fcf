"""The generator: every case is valid, and survives YAML."""

from __future__ import annotations

from hypothesis import HealthCheck, given
from ruamel.yaml import YAML

from tests.sampling import draws

from .interpreter import run
from .specs import Case, make_case, reduced, small_specs, to_yaml, written


@draws(60, 300, 300, suppress_health_check=list(HealthCheck))
@given(small_specs())
def test_cases_run(case: Case) -> None:
    """A case evaluates; YAML keeps it; simple bounds hold."""
    assert YAML(typ="safe").load(to_yaml(case.document)) == {"language": 2, **written(case.document)}
    everything = run(case.document, case.config, case.batch)
    some = run(case.document, case.config, case.batch, train=case.train)
    none = run(case.document, case.config, case.batch, train=())
    assert none.backward == none.trainable_parameters == 0
    assert 0 <= some.backward <= everything.backward <= 2 * everything.forward
    assert some.forward == everything.forward
    if not {"blocks:", "sees:"} & set(to_yaml(case.document).split()):  # pairs that a stream tells may be more than there are
        assert run(case.document, case.config, case.batch, convention="torch").forward >= everything.forward


def test_reduced() -> None:
    """Shrinking keeps the failure and never grows."""
    case = make_case(5, 11)

    def fails(c: Case) -> bool:
        return run(c.document, c.config, c.batch).forward > 0

    assert fails(case)
    small = reduced(case, fails)
    assert fails(small) and len(to_yaml(small.document)) < len(to_yaml(case.document))
