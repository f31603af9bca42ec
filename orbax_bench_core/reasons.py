"""Reasons in the data of answers: a code and its values, which a table of each puts into words."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

import pydantic

from orbax_bench_core.files import ResultModel

ReasonCode = Literal[
    # Not enough was measured yet.
    "too_early",
    "between_looks",
    "too_few_blocks",
    "no_block",
    # Rare events keep a word back, or are one.
    "stalls",
    "failures",
    "not_excluded",
    # An operation may pay for the one before it.
    "carry_over",
    "job_open",
    "in_turn",
    "own_processes_follow",
    # Something is missing.
    "lacks",
    "one_side_only",
    "no_primary",
    "unknown_primary",
    "record_lost",
    # Something failed, or cannot be.
    "nothing_passed",
    "always_failed",
    "baseline_failed",
    "repeat_failed",
    "arm_impossible",
    # Both sides are not alike.
    "hosts_differ",
    "other_surroundings",
    "same_run",
    "storage",
    # Two runs that were measured apart.
    "two_runs",
    "past_unknown",
    "operations_needed",
    "captures_needed",
    "summary_only",
    # What a reader must know of the whole comparison.
    "versions_differ",
    "revisions",
    "not_alone",
    "took_turns",
    "surroundings_unknown",
    # A series is not what a statistic supposes.
    "left_out",
    "no_values",
    "drifts",
    "two_groups",
    "outliers",
    "slow_start",
    # What was given is no data of a comparison.
    "malformed",
    "arms_unbalanced",
    "unusable_value",
    # What is wrong with the times that a choice of options stands on.
    "storage_trouble",
    "cached",
    "not_cached",
    # What a soak does not judge, or not whole.
    "not_measured",
    "no_levels",
    "several_lives",
    "repeats_failed",
    # What an async study leaves out, or cannot say.
    "sequential",
    "no_record",
    "repeats_left_out",
    "no_partner",
    "no_times",
    "no_bytes",
    "one_size",
    "few_sizes",
    "no_parameters",
    # Why a probe of the machine has no times, or moved fewer bytes than asked for.
    "not_compared",
    "no_local_files",
    "no_page_cache",
    "cpu_devices",
    "stays_resident",
    "probe_failed",
    "little_room",
    # What others said, or a file of an earlier version, in a sentence.
    "told",
]

Value = int | float | str | tuple[int | str, ...]

Words = Mapping[ReasonCode, str | Callable[..., str]]
"""Words of each code: a text with the names of its values, lists with commas, or a function."""


class Reason(ResultModel):
    """One reason, flag or note of an answer.

    Attributes:
        code: What it is; scripts branch on it.
        operation: The operation that it is about; left out where that is the one of the verdict,
            or the whole point.
        values: What belongs to it, by name: counts, shares, ratios, names, and as `said` what an
            error or an earlier version has said in its own words.
    """

    code: ReasonCode
    operation: str = pydantic.Field(default="", exclude_if=lambda found: not found)
    values: dict[str, Value] = pydantic.Field(default={}, exclude_if=lambda found: not found)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _of_text(cls, content: Any) -> Any:
        """Reads what an earlier version has said in words."""
        told = isinstance(content, str)
        return {"code": "told", "values": {"said": content}} if told else content


def _of_one(content: Any) -> Any:
    """Reads a text of an earlier version; an empty one was no reason."""
    if isinstance(content, str):
        return (content,) if content else ()
    return content


Reasons = Annotated[tuple[Reason, ...], pydantic.BeforeValidator(_of_one)]
NO_REASON: Final[Reasons] = ()


def because(code: ReasonCode, operation: str = "", **values: Value | None) -> Reasons:
    """Returns one reason; what is None is left out. Several are added up with `+`."""
    known = {name: value for name, value in values.items() if value is not None}
    return (Reason(code=code, operation=operation, values=known),)


def of_operation(name: str, reasons: Reasons) -> Reasons:
    """Returns the reasons of an operation as those of its point."""
    return tuple(reason.model_copy(update={"operation": name}) for reason in reasons)


def in_words(words: Words, *reasons: Reason) -> str:
    """Returns reasons in words, without their operations; empty for none.

    What others said is quoted as it is. Of a damaged file, whose values do not fit the code, the
    code is shown with these.
    """
    return "; ".join(_sentence(words, each) for each in reasons)


def _sentence(words: Words, reason: Reason) -> str:
    values = reason.values
    try:
        found = "{said}" if reason.code == "told" else words[reason.code]
        if callable(found):
            return found(**values)
        lists = {name: each for name, each in values.items() if isinstance(each, tuple)}
        told = {name: ", ".join(map(str, each)) or "none" for name, each in lists.items()}
        return found.format(**{**values, **told})
    except (LookupError, TypeError, ValueError, AttributeError):
        stored = ", ".join(f"{name}={value}" for name, value in values.items())
        return f"{reason.code} ({stored or 'no values'})"
