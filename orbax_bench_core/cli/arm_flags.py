"""Arms of a comparison, as flags of the command line."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from orbax_bench_core.config import (
    ARMS,
    Arm,
    LoadedSuite,
    override_flags,
    parse_suite,
    read_value,
    with_keys,
)
from orbax_bench_core.errors import Problem, UserError, shortened
from orbax_bench_core.experiments import Comparison
from orbax_bench_core.records import RunInfo

_OWN_KEYS: Final = {"environment", "generator", "processes", "storage"}


@dataclasses.dataclass(kw_only=True)
class FlaggedComparison(Comparison):
    """A comparison whose arms may be those of a command line, each `key=value`, or the same."""

    arms: tuple[Sequence[str], Sequence[str]]
    same: bool

    def checked(self, suite: LoadedSuite) -> LoadedSuite:
        """Gives a suite its arms; the command that goes on has the flags that say them."""
        found = with_arms(suite, *self.arms, same=self.same)
        flags = [
            word for arm, given in zip(ARMS, self.arms, strict=True) for word in _flags(arm, given)
        ]
        flags += ["--aa"] if self.same else []
        if not flags:
            return found
        flags += override_flags(suite.text)
        return RunInfo.made_by(("ab", suite.source.file, *flags), found)

    def errors(self) -> contextlib.AbstractContextManager[None]:
        """Tells what is wrong with an arm by its flag."""
        return told_by_flags(*self.arms)


def _flags(arm: Arm, given: Sequence[str]) -> list[str]:
    return [word for each in given for word in (f"--{arm}", each)]


def with_arms(
    loaded: LoadedSuite, baseline: Sequence[str], candidate: Sequence[str], *, same: bool
) -> LoadedSuite:
    """Returns a suite with arms: its own, or those of a command line, each `key=value`."""
    given = bool(baseline or candidate)
    if same and given:
        raise UserError("--aa compares the suite with itself; leave out the arms")
    if loaded.suite.arms is not None:
        if given:
            message = "the suite has arms of its own; leave out the flags"
            raise UserError(loaded.source.problem(message, ("arms",)))
        return _asked(loaded) if same else loaded
    if not same and not given:
        raise UserError(
            loaded.source.problem(
                "nothing to compare: give the suite an `arms` block, or say what is different "
                "in the candidate, such as --candidate use_ocdbt=false; --aa compares it with "
                "itself",
                (),
            )
        )
    if same:
        return with_equal_arms(loaded, _lives(loaded))
    arms = {"baseline": _arm("baseline", baseline), "candidate": _arm("candidate", candidate)}
    text = with_keys(loaded.text, {"arms": arms}, loaded.source.file)
    return parse_suite(text, loaded.source.file)


def _lives(loaded: LoadedSuite) -> dict[str, str]:
    return {} if "lives" in loaded.source.data.get("gate", {}) else {"lives": "always"}


def _asked(loaded: LoadedSuite) -> LoadedSuite:
    """Returns a suite with arms of its own that says that these are meant to be the same."""
    data = loaded.source.data
    asked = {
        "arms": {**(data["arms"] or {}), "aa": True},
        "gate": {**data.get("gate", {}), **_lives(loaded)},
    }
    found = parse_suite(yaml.safe_dump({**data, **asked}, sort_keys=False), loaded.source.file)
    return dataclasses.replace(found, source=loaded.source)  # messages name lines of the file


def with_equal_arms(loaded: LoadedSuite, gate: Mapping[str, Any]) -> LoadedSuite:
    """Returns a suite whose arms are the same: its candidate, or what it measures without arms."""
    # Where that has an environment, each arm has one of its own, with the same content: arms in two
    # environments are two kinds of workers. Keys of `gate` go in place of the suite's.
    data, suite = dict(loaded.source.data), loaded.suite
    arm = suite.arm("candidate").model_dump(mode="json", exclude_unset=True)
    arms: dict[str, Any] = {"baseline": arm, "candidate": dict(arm)}
    only = suite.environments[0].name if len(suite.environments) == 1 else None
    environment = suite.environment(arm.get("environment", only))
    if environment is not None:
        again = environment.model_copy(update={"name": f"{environment.name}-again"})
        both = (environment, again)
        data["environments"] = [
            each.model_dump(mode="json", exclude_defaults=True) for each in both
        ]
        arms = {
            name: {**arm, "environment": each.name} for name, each in zip(ARMS, both, strict=True)
        }
    data |= {"arms": {**arms, "aa": True}, "gate": {**data.get("gate", {}), **gate}}
    return parse_suite(yaml.safe_dump(data, sort_keys=False), loaded.source.file)


@contextlib.contextmanager
def told_by_flags(baseline: Sequence[str], candidate: Sequence[str]) -> Iterator[None]:
    """Tells what is wrong with an arm by the flag that has it, for it has no line in the suite."""
    flags = {
        ("arms", arm, *(() if key in _OWN_KEYS else ("options",)), key): _said(arm, item)
        for arm, items in zip(ARMS, (baseline, candidate), strict=True)
        for item in items
        for key in [item.partition("=")[0]]
    }
    try:
        yield
    except UserError as wrong:
        told = [
            Problem(problem.message, file=flags[key])
            if (key := tuple(problem.key.split("."))) in flags
            else problem
            for problem in wrong.problems
        ]
        if told == list(wrong.problems):
            raise
        raise UserError(*told) from None


def _said(arm: Arm, item: str) -> str:
    return f"--{arm} {shortened(item)}"


def _arm(name: Arm, given: Sequence[str]) -> dict[str, Any]:
    arm: dict[str, Any] = {"options": {}}
    for item in given:
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise UserError(f"{_said(name, item)}: expected KEY=VALUE, such as use_ocdbt=false")
        plain = read_value(value, _said(name, item))
        if key in _OWN_KEYS:
            arm[key] = plain if key == "processes" else value
        else:
            arm["options"][key] = plain
    return arm
