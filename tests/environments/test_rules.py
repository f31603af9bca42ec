import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from orbax_bench_core.environments import OLDEST_ORBAX, EnvironmentFailed
from orbax_bench_core.environments.resolve import refuse_release, requirements_of
from orbax_bench_core.environments.supported import RULES


@pytest.mark.parametrize("version", ["0.11.11", "0.6.4", "0.11.12.dev1"])
def test_a_release_without_the_v1_api_is_refused(version):
    with pytest.raises(EnvironmentFailed, match=f"{OLDEST_ORBAX} is the oldest"):
        refuse_release(version)


@pytest.mark.parametrize(
    ("version", "needs"), [("0.11.12", ("jax<0.7",)), ("0.11.34", ("flax",)), ("0.12.8", ())]
)
def test_some_releases_need_what_they_do_not_say(version, needs):
    assert requirements_of(version) == needs


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_well_formed(rule):
    assert Version(rule.first) <= Version(rule.last)
    assert Requirement(rule.needs).name in {"jax", "flax"}
