"""The `gate` block: tolerance, margin, error levels and looks of the statistical gate."""

import hashlib
import json
import math
from typing import Annotated, Any, Final, Literal, Self

import pydantic

from orbax_bench_core.config.base import ConfigModel, explain

Share = Annotated[float, pydantic.Field(gt=0, lt=1)]
Limit = Share | Literal["auto"] | None

MAX_PRIMARY = 3

PER_ARM: Final = 2
"""Slots of each arm in one block; a slot is an operation, or the life of a worker."""
BLOCK_SIZE: Final = 2 * PER_ARM

LOOKS: Final = (10, 20, 40, 60)
"""Operations per arm at the looks, unless the suite says otherwise."""

DEFAULT_PRIMARY: Final = ("save_blocking", "save", "load")

_BLOCKS_OF_LIVES: Final = {1: (5, 10, 20, 30), 2: (4, 6, 10, 15)}
_BLOCKS_OF_LONG_LIVES: Final = (4, 6, 8, 12)
"""Blocks of lives at the default looks. Four are the fewest whose orders, 6 to the 4th, make the
level of the first look possible for one of three primary operations, a quarter of 1 % over 3."""

_FOLLOWED_UP: Final = (5, 3)
"""Stalls and failures are rare: they are followed up to 5/3 of the last of the looks."""

_MORE_LOOKS: Final = 2
"""Looks after that, which only `--more` reaches, each at 5/3 of the one before."""

_CONFIDENCE: Final = 0.95

_AUTO_LIMIT: Final = 0.1

_FAILURES_OF_ALPHA: Final = 0.5


class GateRule(ConfigModel):
    """Rule by which one metric has regressed, or has not.

    Attributes:
        tolerance: Largest relative slow-down that nobody minds: REGRESSION says that the true one
            is larger. Called delta in the method.
        margin: Smallest relative slow-down that nobody may miss: PASS says that the true one is
            smaller. Called Delta in the method.
        min_effect_s: Slow-down in seconds below which nobody minds, however large its share: both
            the tolerance and the margin are at least as many seconds.
        max_stalls: Share of operations in which the candidate may stall beyond the share in which
            the baseline does: PASS has to exclude a larger one with 95 % confidence. `null` asks
            for no more than that the candidate does not stall more often. `auto` is 0.1 for as far
            as `limit_minutes` reach, and `looks` that end below 29 operations have no such limit.
        max_failures: The same of first attempts that fail.
        limit_minutes: Minutes that the operations of one point may take for the sake of limits that
            are `auto`: a PASS does not wait for a look that takes more, and says which share it
            cannot exclude. Suspected stalls and failures are followed up all the same.
        alpha: Probability of a REGRESSION when the slow-down is within the tolerance, over all
            looks together.
        pass_alpha: Probability of a PASS when the slow-down is the margin, over all looks together.
        looks: Operations per arm after which the data are looked at, ascending; see `looks_of`.
        draws: Random orders that stand in for all of them when there are too many to list.
    """

    tolerance: Annotated[float, pydantic.Field(ge=0)] = 0.03
    margin: Annotated[float, pydantic.Field(gt=0)] = 0.15
    min_effect_s: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)] = 0.0
    max_stalls: Limit = "auto"
    max_failures: Limit = "auto"
    limit_minutes: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)] = 30.0
    alpha: Share = 0.01
    pass_alpha: Share = 0.05
    looks: Annotated[
        tuple[pydantic.PositiveInt, ...], pydantic.Field(min_length=1, strict=False)
    ] = LOOKS
    draws: Annotated[int, pydantic.Field(ge=999)] = 1999

    def looks_of(self, per_life: int = 1) -> tuple[int, ...]:
        """Returns the looks, in operations per arm, each a whole number of blocks."""
        # The default looks become those of the method for lives: 16, 24, 40 and 60 operations with
        # 2 per life. Looks that a suite names are rounded up to whole blocks.
        block = PER_ARM * per_life
        if self.looks == LOOKS:
            blocks = _BLOCKS_OF_LIVES.get(per_life, _BLOCKS_OF_LONG_LIVES)
            return tuple(block * count for count in blocks)
        return tuple(dict.fromkeys(block * -(-look // block) for look in self.looks))

    @property
    def failures_alpha(self) -> float:
        """Level of the failures of a point; its stalls have the same as its times, `alpha`."""
        return _FAILURES_OF_ALPHA * self.alpha

    def looks_at_all(self, per_life: int = 1) -> tuple[int, ...]:
        """Returns `looks_of`, and the one more that follows up stalls and failures: 100."""
        return self.looks_with_more(per_life)[:-_MORE_LOOKS]

    def looks_with_more(self, per_life: int = 1) -> tuple[int, ...]:
        """Returns `looks_at_all`, and those that only `--more` reaches: 168 and 280."""
        looks, block, (times, over) = self.looks_of(per_life), PER_ARM * per_life, _FOLLOWED_UP
        for _ in range(1 + _MORE_LOOKS):
            looks = (*looks, block * -(-looks[-1] * times // (over * block)))
        return looks

    def limits_at(self, look: int, repeat_s: float, per_life: int = 1) -> Self:
        """Returns the rule with a share or None for each limit that is `auto`, as it is at a look.

        Args:
            look: Index of the look, among `looks_at_all`.
            repeat_s: Seconds that one operation costs, with all that is around it.
            per_life: Operations of one life of a worker.
        """
        looks = self.looks_at_all(per_life)
        needed = looks[min(look + 1, len(looks) - 1)]
        reached = BLOCK_SIZE / PER_ARM * needed * repeat_s <= 60 * self.limit_minutes
        found = _AUTO_LIMIT if reached and _can_show(_AUTO_LIMIT, looks[-2]) else None
        automatic = [name for name, share in self._limits().items() if share == "auto"]
        return self.model_copy(update=dict.fromkeys(automatic, found))

    def fewest_of_pass(self, repeat_s: float, per_life: int = 1) -> int:
        """Returns the first look at which a PASS can exclude what the limits ask for.

        Args:
            repeat_s: Seconds that one operation costs, with all that is around it.
            per_life: Operations of one life of a worker.

        Returns:
            Operations per arm.
        """
        looks = self.looks_at_all(per_life)
        for index, look in enumerate(looks):
            rule = self.limits_at(index, repeat_s, per_life)
            limits = (rule.max_stalls, rule.max_failures)
            if all(_can_show(share, look) for share in limits if isinstance(share, float)):
                return look
        return looks[-1]

    def in_ratios(self, typical_s: float) -> Self:
        """Returns the rule for times of so many seconds, with `min_effect_s` as a share of them."""
        least = self.min_effect_s / typical_s
        return self.model_copy(
            update={"tolerance": max(self.tolerance, least), "margin": max(self.margin, least)}
        )

    def _limits(self) -> dict[str, Limit]:
        return {"max_stalls": self.max_stalls, "max_failures": self.max_failures}

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.margin <= self.tolerance:
            raise ValueError(
                f"margin {self.margin:g} must be larger than tolerance {self.tolerance:g}: no "
                "verdict is promised between them"
            )
        if list(self.looks) != sorted(set(self.looks)):
            raise ValueError(f"looks must ascend, got {list(self.looks)}")
        if odd := [look for look in self.looks if look % 2]:
            raise ValueError(f"looks must be even, because a block has two per arm; got {odd}")
        last = self.looks_at_all()[-1]
        for name, share in self._limits().items():
            if isinstance(share, float) and not _can_show(share, last):
                needed = math.ceil(math.log(1 - _CONFIDENCE) / math.log1p(-share))
                raise ValueError(
                    f"{name} {share:g} can never be shown: even without one it takes {needed} "
                    f"operations per arm, and the last look is at {last} (5/3 of the last of looks)"
                )
        return self


def _can_show(share: float, operations: int) -> bool:
    """Returns whether so many operations without one exclude a share."""
    return (1 - share) ** operations <= 1 - _CONFIDENCE


class MetricRule(ConfigModel):
    """Differences of one metric from the rule for all; None takes that.

    Attributes:
        tolerance: Largest relative slow-down that nobody minds.
        margin: Smallest relative slow-down that nobody may miss.
        min_effect_s: Slow-down in seconds below which nobody minds.
    """

    tolerance: Annotated[float, pydantic.Field(ge=0)] | None = None
    margin: Annotated[float, pydantic.Field(gt=0)] | None = None
    min_effect_s: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)] | None = None


class GateConfig(GateRule):
    """Rules by which arms are compared. Every key is optional.

    Attributes:
        primary: Operations whose times decide the verdict, at most 3; those that a benchmark does
            not have are left out. `save:cpu` is the CPU time of `save`, which a busy machine
            disturbs less than its time. All others are shown, and decide nothing. A benchmark that
            has none of the default ones is judged by the first 3 operations that it measures.
        metrics: What single operations have different, by name: `save`, or `save:cpu`.
        family: What `alpha` is shared among: the operations of one `point`, or of all points of
            the `suite`.
        lives: Whether every slot of a block is a worker process of its own: `auto` where the arms
            cannot share one worker, or once an operation carries over to the next; or `always`.
        operations_per_life: Measured operations of each such process.
        blocks_per_process: Blocks that share one worker process where the arms can: what an option
            does differs from process to process, so a comparison sees several.
        seed: Seed of the order of the arms in the blocks; None takes the id of the run.
    """

    primary: Annotated[
        tuple[str, ...], pydantic.Field(min_length=1, max_length=MAX_PRIMARY, strict=False)
    ] = DEFAULT_PRIMARY
    metrics: dict[str, MetricRule] = {}
    family: Literal["point", "suite"] = "point"
    lives: Literal["auto", "always"] = "auto"
    operations_per_life: Annotated[int, pydantic.Field(ge=1)] = 2
    blocks_per_process: Annotated[int, pydantic.Field(ge=1)] = 2
    seed: int | None = None

    def rule(self, operation: str) -> GateRule:
        """Returns the rule for the time of one operation."""
        common = {name: getattr(self, name) for name in GateRule.model_fields}
        own = self.metrics.get(operation, MetricRule()).model_dump(exclude_none=True)
        return GateRule(**{**common, **own})

    @property
    def false_alarms(self) -> float:
        """Bound of the chance that a point, or where `family` is the suite a run, says REGRESSION.

        It is of arms that do not differ, and adds the levels of times, stalls and failures.
        """
        return min(1.0, 2 * self.alpha + self.failures_alpha)

    @property
    def names_primary(self) -> bool:
        """Whether the suite says itself which operations decide."""
        return self.primary != DEFAULT_PRIMARY

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all rules, in hex: the same for the same rules, however they are written."""
        canonical = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def canonical(self) -> dict[str, Any]:
        """Returns all rules, flat, without what is written and changes nothing."""
        found = self.model_dump(mode="json", exclude={"metrics"})
        found["primary"] = sorted(set(self.primary))
        for operation in sorted(self.metrics):
            own = self.metrics[operation].model_dump(exclude_none=True)
            for name, value in own.items():
                if value != getattr(self, name):
                    found[f"metrics.{operation}.{name}"] = value
        return found

    @pydantic.model_validator(mode="after")
    def _rules_hold(self) -> Self:
        for operation in self.metrics:
            try:
                self.rule(operation)
            except pydantic.ValidationError as error:
                raise ValueError(f"metrics.{operation}: {explain(error.errors()[0], ())}") from None
        return self
