"""Steps that were tried again, as the run directory and the report have them."""

import datetime
from typing import Final, Literal

import pydantic

from orbax_bench_core.errors import UserError
from orbax_bench_core.files import ResultModel, digest, matching, read_at_most, write_atomically
from orbax_bench_core.records import RunDirectory

_FOLDER: Final = "retries"


class StepRetries(ResultModel):
    """A step that was tried again, for reasons that pass by themselves."""

    version: Literal[1] = 1  # version of this layout
    step: str
    at: datetime.datetime  # when its last try began, UTC
    reasons: tuple[str, ...]  # why each try but the last one ended
    succeeded: bool  # whether the last one ended well

    @property
    def words(self) -> str:
        """What happened, in a sentence."""
        times = len(self.reasons)
        how = "and went on" if self.succeeded else "in vain"
        return (
            f"{self.step} was tried again {'once' if times == 1 else f'{times} times'} {how}, "
            f"last at {self.at:%Y-%m-%d %H:%M} UTC: {'; '.join(dict.fromkeys(self.reasons))}"
        )


def note_retries(run: RunDirectory, retries: StepRetries) -> None:
    """Writes which step was tried again, in a file of its own."""
    data = retries.model_dump_json(indent=1).encode()
    write_atomically(run.root / _FOLDER / f"{retries.step}-{digest(data)[:12]}.json", data)


def read_retries(run: RunDirectory) -> list[StepRetries]:
    """Returns the steps that were tried again, in the order of time."""
    found = []
    for path in matching(run.root, f"{_FOLDER}/*.json"):
        try:
            found.append(StepRetries.model_validate_json(read_at_most(path)))
        except (OSError, ImportError, UserError, pydantic.ValidationError):
            continue  # a report says what it can
    return sorted(found, key=lambda one: one.at)
