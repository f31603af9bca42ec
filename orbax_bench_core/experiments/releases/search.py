"""Comparisons of releases: an environment each, the bisection over many, and the upgrade."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import yaml

from orbax_bench_core import pages
from orbax_bench_core.analysis import releases
from orbax_bench_core.analysis.releases import Purpose, ReleaseWord
from orbax_bench_core.config import (
    BenchmarkEntry,
    EnvironmentConfig,
    LoadedSuite,
    override_flags,
    parse_suite,
)
from orbax_bench_core.errors import UserError, command, did_you_mean
from orbax_bench_core.execute import Say, Session
from orbax_bench_core.experiments.comparison import Comparison
from orbax_bench_core.pages import count
from orbax_bench_core.records import RunDirectory, RunInfo
from orbax_bench_core.sweep import suite_folder

if TYPE_CHECKING:
    from packaging.version import Version

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

_ROUNDS: Final = 3
"""Restarts of a search behind a release that turned out to be as its predecessor."""

_NO_REGRESSION: Final[Mapping[ReleaseWord, releases.Conclusion]] = MappingProxyType(
    {"PASS": "same", "INCONCLUSIVE": "undecided", "FAILED": "failed"}
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Release:
    """One release, and what a worker runs with to have it."""

    version: str
    environment: EnvironmentConfig


def find_releases(
    package: str,
    good: str,
    bad: str,
    *,
    wheels: Path | None = None,
    also: Sequence[str] = (),
    only_wheels: bool = False,
) -> tuple[Release, ...]:
    """Returns the releases from `good` to `bad`, in order of version, both included.

    Args:
        package: Name on the package index.
        good: Version that was fast; older than `bad`.
        bad: Version that is slow.
        wheels: Folder with wheels of the package, which come before those of the index.
        also: Further requirements of each environment.
        only_wheels: Whether the index is not asked.

    Raises:
        UserError: There is no such release, or `good` is not older than `bad`.
    """
    from packaging.version import InvalidVersion, Version

    local = {} if wheels is None else _wheels(package, wheels)
    requirements = {version: str(path) for version, path in local.items()}
    try:
        first, last = Version(good), Version(bad)
    except InvalidVersion as error:
        raise UserError(f"--good and --bad are versions of {package}: {error}") from None
    if not only_wheels:
        from orbax_bench_core.environments import releases

        since, until = sorted((first, last))
        for version in releases(package, since=str(since), until=str(until)):
            requirements.setdefault(version, f"{package}=={version}")
    for version in (first, last):
        if version not in requirements:
            hint = did_you_mean(str(version), map(str, requirements))
            raise UserError(f"{package} has no release {version}; {hint}")
    if first >= last:
        raise UserError(
            f"the good release {good} must be older than the bad one {bad}: bisect finds what made "
            "something slower; exchange them if it became faster"
        )
    return tuple(
        Release(
            version=str(version),
            environment=EnvironmentConfig(
                name=f"{package}-{version}", requirements=(requirements[version], *also)
            ),
        )
        for version in sorted(requirements)
        if first <= version <= last
    )


def _wheels(package: str, folder: Path) -> dict[Version, Path]:
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

    if not folder.is_dir():
        raise UserError(f"--wheels names no folder: {folder}")
    found: dict[Version, Path] = {}
    for path in sorted(folder.glob("*.whl")):
        try:
            name, version, _, _ = parse_wheel_filename(path.name)
        except InvalidWheelFilename as error:
            raise UserError(f"not the name of a wheel: {error}") from None
        if name == canonicalize_name(package):
            found[version] = path.resolve()
    return found


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One comparison of a release search: `release` against the older `against`, and its word."""

    release: str
    against: str
    purpose: Purpose
    outcome: ReleaseWord


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """Result of a release search."""

    conclusion: releases.Conclusion  # kind of the answer
    # the direct predecessor of a named release; the older end of a range; the good release when the
    # ends do not differ, or gave no verdict
    last_good: str
    # the release that is named, or the newer end of a range; None without either
    first_bad: str | None
    undecided: tuple[str, ...] = ()  # releases inside a range that gave no verdict
    steps: tuple[Compared, ...]  # every comparison, in order


def search_releases(releases: Sequence[str], outcome: Callable[[str, str], ReleaseWord]) -> Found:
    """Searches for the release that has regressed, between the first of a list and its last.

    The ends are compared first: without a regression there is nothing to look for. Every step then
    halves what is left, each release against the good one; a release that gives no verdict, or
    cannot be measured, is passed over in favour of the nearest one to the middle that has not been
    tried. The first bad release is compared with its direct predecessor before it is named. If it
    passes there, it becomes the good release, and what lies between it and the bad one is searched,
    in three rounds at most. Without a name the answer is a range whose newer end has regressed
    against the older one.
    """
    return _Search(releases, outcome).run()


class _Search:
    def __init__(self, releases: Sequence[str], outcome: Callable[[str, str], ReleaseWord]) -> None:
        self._releases = releases
        self._outcome = outcome
        self._steps: list[Compared] = []

    def run(self) -> Found:
        good, last = 0, len(self._releases) - 1
        word = self._ask(last, good, "ends")
        if word != "REGRESSION":
            conclusion = _NO_REGRESSION[word]
            return self._found(conclusion, good, None)
        for rounds_left in reversed(range(_ROUNDS)):
            low, high = self._halve(good, last)
            if high - low > 1:
                break
            word = self._confirm(high, low, good)
            if word == "REGRESSION":
                return self._found("named", low, high)
            if word != "PASS":
                break
            # As its predecessor: the regression came in steps before it, or is yet to come.
            low = good
            if high == last or not rounds_left:
                break
            if self._ask(last, high, "ends") != "REGRESSION":
                break
            good = high
        return self._found("range", low, high)

    def _halve(self, good: int, bad: int) -> tuple[int, int]:
        """Returns the newest release that passes against the good one, and the oldest bad one."""
        tried: set[int] = set()
        first = good
        while untried := [index for index in range(good + 1, bad) if index not in tried]:
            middle = min(untried, key=lambda index: abs(2 * index - good - bad))
            tried.add(middle)
            word = self._ask(middle, first, "search")
            if word == "REGRESSION":
                bad = middle
            elif word == "PASS":
                good = middle
        return good, bad

    def _confirm(self, bad: int, predecessor: int, good: int) -> ReleaseWord:
        if predecessor == good:
            for step in self._steps:
                ends = (step.release, step.against) == (self._releases[bad], self._releases[good])
                if ends and step.purpose == "ends":
                    return step.outcome  # not chosen by the search, so it needs no second look
        return self._ask(bad, predecessor, "confirm")

    def _ask(self, release: int, against: int, purpose: Purpose) -> ReleaseWord:
        newer, older = self._releases[release], self._releases[against]
        word = self._outcome(newer, older)
        step = Compared(release=newer, against=older, purpose=purpose, outcome=word)
        self._steps.append(step)
        return word

    def _found(self, conclusion: releases.Conclusion, low: int, high: int | None) -> Found:
        inside = () if high is None or conclusion == "named" else self._releases[low + 1 : high]
        silent = {
            step.release
            for step in self._steps
            if step.outcome not in {"PASS", "REGRESSION"} and step.purpose == "search"
        }
        return Found(
            conclusion=conclusion,
            last_good=self._releases[low],
            first_bad=None if high is None else self._releases[high],
            undecided=tuple(release for release in inside if release in silent),
            steps=tuple(self._steps),
        )


def expected_comparisons(releases: int) -> tuple[int, int]:
    """Returns how many comparisons a search takes if one step is behind it, and the most."""
    halvings = math.ceil(math.log2(releases - 1))
    usual = 1 if releases == 2 else 1 + halvings + 1
    return usual, min(_ROUNDS * usual, releases * (releases - 1) // 2)


def comparing_releases(
    loaded: LoadedSuite,
    baseline: EnvironmentConfig,
    candidate: EnvironmentConfig,
    *,
    gate: Mapping[str, Any] = NOTHING,
) -> LoadedSuite:
    """Returns a suite with two environments as its arms.

    Environments of the suite are replaced. Where it has arms, both sides are its candidate: with
    the options, the benchmark, the processes, the mesh and the storage of that arm.

    Args:
        loaded: The suite.
        baseline: Environment of the baseline; its name is that of the side.
        candidate: Environment of the candidate.
        gate: Keys that go in place of those of the suite's `gate` block.

    Raises:
        SuiteError: The suite that results is not valid.
    """
    data = dict(loaded.source.data)
    data["environments"] = [
        environment.model_dump(mode="json", exclude_defaults=True)
        for environment in (baseline, candidate)
    ]
    arm = loaded.suite.arm("candidate").model_dump(mode="json", exclude_unset=True)
    data["arms"] = {
        "baseline": {**arm, "environment": baseline.name},
        "candidate": {**arm, "environment": candidate.name},
    }
    if gate:
        data["gate"] = {**data.get("gate", {}), **gate}
    text = yaml.safe_dump(data, sort_keys=False)
    return parse_suite(text, loaded.source.file)


def kept_requirements(loaded: LoadedSuite, package: str, also: Sequence[str]) -> tuple[str, ...]:
    """Returns the requirements of every environment of a search but the package's release.

    Args:
        loaded: The suite, whose candidate (or only) environment may have requirements.
        package: The package that is searched, whose own requirement is left out.
        also: Requirements from the command line; they replace those of the suite by the same name.

    Returns:
        `also`, followed by the requirements of the suite that are left.

    Raises:
        UserError: The suite's environment is an interpreter, into which nothing is installed.
    """
    environment = _own_environment(loaded)
    if environment is None:
        return tuple(also)
    if environment.interpreter is not None:
        raise UserError(
            loaded.source.problem(
                f"environment {environment.name!r} is an interpreter, and bisect installs releases "
                "of its own: give it `requirements`, or leave it out",
                ("environments",),
            )
        )
    named = {_package(package), *map(_package, also)}
    rest = (each for each in environment.requirements if _package(each) not in named)
    return (*also, *rest)


def _own_environment(loaded: LoadedSuite) -> EnvironmentConfig | None:
    suite = loaded.suite
    if suite.arms is not None:
        return suite.environment(suite.arms.candidate.environment)
    if len(suite.environments) > 1:
        names = ", ".join(environment.name for environment in suite.environments)
        raise UserError(
            loaded.source.problem(
                f"the suite sweeps {len(suite.environments)} environments ({names}), and bisect "
                "puts releases into one: keep one, or name it in `arms.candidate.environment`",
                ("environments",),
            )
        )
    return next(iter(suite.environments), None)


def _package(requirement: str) -> str:
    """Returns the package that a requirement names; the requirement itself where it names none."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        pass
    try:
        return parse_wheel_filename(Path(requirement).name)[0]
    except InvalidWheelFilename:
        return requirement


PACKAGE: Final = "orbax-checkpoint"
_INTERFACES: Final = {"save_restore": "v1", "pytree_checkpoint": "v0", "checkpoint_manager": "v0"}
"""Interfaces of Orbax by the built-in that uses them."""


@dataclasses.dataclass(kw_only=True)
class Upgrading(Comparison):
    """Comparison of two releases of Orbax, each in an environment of its own."""

    old: str | None = None  # by default the installed one
    new: str | None = None  # by default the newest one
    also: Sequence[str] = ()  # what else both have
    own: bool = True  # whether the suite is the user's

    def checked(self, suite: LoadedSuite) -> LoadedSuite:
        """Gives a suite the releases as its arms, once it is known that there are such.

        Raises:
            UserError: A version cannot be read or is not released, both are the same, or `--from`
                is not older than `--to`.
        """
        from orbax_bench_core.environments import newest_release

        old = _installed() if self.old is None else str(_version(self.old, "--from"))
        new = str(newest_release(PACKAGE) if self.new is None else _version(self.new, "--to"))
        if self.new is None and old == new:
            raise UserError(
                f"{PACKAGE} {old} is the newest release: there is nothing to upgrade to; --from "
                "and --to compare any two"
            )
        rest = kept_requirements(suite, PACKAGE, self.also)
        both = [
            EnvironmentConfig(
                name=f"{PACKAGE}-{version}", requirements=(f"{PACKAGE}=={version}", *rest)
            )
            for version in (old, new)
        ]
        self.folder = f"upgrade-{old}-{new}"
        self._old, self._new = old, new
        self._suite = suite.source.file
        self._through = ", ".join(map(_through, suite.suite.benchmarks))
        own = ("--suite", self._suite) if self.own else ()
        ends = ("--from", old, "--to", new, *self._with(), *override_flags(suite.text))
        planned = comparing_releases(suite, both[0], both[1])
        _check_releases(planned, old, new)
        if _version(old, "--from") >= _version(new, "--to"):
            raise UserError(
                f"--from {old} is not older than --to {new}: the release in use comes first, and "
                "the one that may replace it second"
            )
        return RunInfo.made_by(("upgrade", *own, *ends), planned)

    def measure(self, session: Session, *, lock: bool) -> None:
        """Makes both environments, and then compares the releases."""
        _make_both(session.suite, session.say)
        super().measure(session, lock=lock)

    def told(self, document: pages.Document, run: RunDirectory) -> pages.Document:
        """Names the releases, and the command that finds the first bad one of a REGRESSION."""
        releases = f"{PACKAGE} {self._old} and {self._new}, through {self._through}"
        following = document.following
        if self.verdicts is not None and self.verdicts.word == "REGRESSION":
            ends = ("--package", PACKAGE, "--good", self._old, "--bad", self._new)
            place = f"{run.root}-bisect"
            following = pages.Code(
                command("bisect", self._suite, *ends, *self._with(), "-o", place),
                "The first bad release between the two:",
            )
        summary = (*document.summary, pages.Text(releases, "dim"))
        return dataclasses.replace(document, summary=summary, following=following)

    def _with(self) -> list[str]:
        return [word for requirement in self.also for word in ("--with", requirement)]


def _through(benchmark: BenchmarkEntry) -> str:
    """Returns the benchmark that saves and loads, with the interface of Orbax that it uses."""
    name = str(benchmark.generator)
    return f"{name} ({_INTERFACES[name]})" if name in _INTERFACES else name


def _make_both(suite: LoadedSuite, say: Say) -> None:
    """Makes the environments of both releases, and says first how many are to be made."""
    from orbax_bench_core.environments import EnvironmentFailed, is_made, make_environments

    folder, both = _folder(suite), suite.suite.environments
    if unmade := sum(not is_made(environment, folder=folder) for environment in both):
        say(f"First {count(unmade, 'environment')} to install, once: a minute or two")
    made = make_environments(both, folder=folder, say=say)
    problems = [
        f"environment {name} cannot be made: {failure}"
        for name, failure in made.items()
        if isinstance(failure, EnvironmentFailed)
    ]
    if problems:
        raise UserError(*problems)


def _check_releases(suite: LoadedSuite, old: str, new: str) -> None:
    """Refuses releases that are too old or do not exist; those that are made already do."""
    from orbax_bench_core.environments import OLDEST_ORBAX, check_release, is_made

    if _version(old, "--from") < _version(OLDEST_ORBAX, ""):
        raise UserError(
            f"--from {old}: {PACKAGE} {OLDEST_ORBAX} is the oldest release with the v1 "
            "interface, which is what is measured"
        )
    folder, both = _folder(suite), suite.suite.environments
    for environment, version in zip(both, (old, new), strict=True):
        if not is_made(environment, folder=folder):
            check_release(PACKAGE, version)


def _folder(suite: LoadedSuite) -> Path:
    return suite_folder(suite.source.file) or Path.cwd()


def _installed() -> str:
    from orbax_bench_core.provenance import UNKNOWN, package_version

    found = package_version(PACKAGE)
    if found == UNKNOWN:
        raise UserError(f"{PACKAGE} is not installed here; name the release in use as --from")
    return found


def _version(given: str, flag: str) -> Version:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(given)
    except InvalidVersion:
        raise UserError(f"{flag}: {given!r} is no version; write one such as 0.12.8") from None
