"""Which versions go with a release of Orbax."""

from __future__ import annotations

from orbax_bench_core.environments.failure import EnvironmentFailed
from orbax_bench_core.environments.supported import OLDEST_ORBAX, RULES


def refuse_release(orbax: str) -> None:
    """Refuses a release of Orbax that has nothing to measure.

    Args:
        orbax: Its version.

    Raises:
        EnvironmentFailed: It is older than the v1 API.
    """
    from packaging.version import Version

    if Version(orbax) < Version(OLDEST_ORBAX):
        raise EnvironmentFailed(
            f"orbax-checkpoint {orbax} has no v1 API, which is what is measured; "
            f"{OLDEST_ORBAX} is the oldest release that has it"
        )


def requirements_of(orbax: str) -> tuple[str, ...]:
    """Returns what a release of Orbax needs and does not say.

    Args:
        orbax: Its version.
    """
    from packaging.version import Version

    version = Version(orbax)
    return tuple(
        rule.needs for rule in RULES if Version(rule.first) <= version <= Version(rule.last)
    )


def works_with(orbax: str) -> str:
    """Returns a hint for people whose Orbax cannot be imported; empty where none is known.

    Args:
        orbax: Its version.
    """
    needs = requirements_of(orbax)
    return f"orbax-checkpoint {orbax} needs {' and '.join(needs)}" if needs else ""
