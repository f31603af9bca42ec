"""Question behind a flag, as the command of the paired comparison that answers it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.history.model import PastRun
from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.provenance import UNKNOWN

_RELEASE: Final = re.compile(r"^\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?$")
_INSTALLED: Final = ("orbax-checkpoint", "tensorstore", "jax", "jaxlib", "numpy", "torch")
"""Packages of a record that an environment can be asked to have, jaxlib along with jax."""


def question(
    before: PastRun,
    after: PastRun,
    environments: tuple[EnvironmentConfig | None, EnvironmentConfig | None],
    suite: str,
) -> str:
    """Returns the command that compares both sides of a change, or nothing where none can.

    Releases of one package in order are searched by `orbax-bench bisect`; any other two sides that
    can be installed again are compared by `orbax-bench ab`.
    """
    was, now = (
        _requirements(run, environment)
        for run, environment in zip((before, after), environments, strict=True)
    )
    lost = [each for each in was if each not in now]
    new = [each for each in now if each not in was]
    if not lost or not new:
        return ""
    suite = suite or "SUITE.yaml"
    folder = f"asked/{before.run_id}_{after.run_id}"
    head = ["orbax-bench", "bisect", suite, "-o", folder]
    if len(lost) == len(new) == 1 and after.value > before.value:
        (old, good), (package, bad) = _release(lost[0]), _release(new[0])
        if old == package and package and _older(good, bad):
            also = [each for each in now if each in was]
            extra = [word for each in also for word in ("--with", each)]
            return shlex.join([*head, "--package", package, "--good", good, "--bad", bad, *extra])
    return _comparison(suite, folder, was, now)


def _requirements(run: PastRun, environment: EnvironmentConfig | None) -> Sequence[str]:
    """Returns what to install for a side; nothing where that is not known."""
    if environment is not None:
        return environment.requirements
    versions = {name: run.ran.get(name, UNKNOWN) for name in _INSTALLED}
    if "jax" in run.ran:
        versions.pop("jaxlib")
    return [f"{name}=={each}" for name, each in versions.items() if _RELEASE.match(each)]


def _release(requirement: str) -> tuple[str, str]:
    """Returns package and version of `package==version`; nothing for what is no release."""
    package, _, version = requirement.partition("==")
    return (package.strip(), version) if _RELEASE.match(version) else ("", "")


def _older(good: str, bad: str) -> bool:
    from packaging.version import Version

    return Version(good) < Version(bad)


def _comparison(suite: str, folder: str, was: Sequence[str], now: Sequence[str]) -> str:
    environments = [
        {"name": "before", "requirements": list(was)},
        {"name": "after", "requirements": list(now)},
    ]
    arms = {"baseline": {"environment": "before"}, "candidate": {"environment": "after"}}
    overrides = (f"environments={json.dumps(environments)}", f"arms={json.dumps(arms)}")
    words = [word for override in overrides for word in ("--override", override)]
    return shlex.join(["orbax-bench", "ab", suite, "-o", folder, *words])
