"""Steps that were tried again: noted in the run directory, and told by its report."""

import contextlib
import datetime
from typing import Final, Literal

import pydantic

from orbax_bench_core import files
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import RunDirectory

_FOLDER: Final = "retries"


class StepRetries(files.ResultModel):
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
        how = "and went on" if self.succeeded else "without success"
        return (
            f"{self.step} was tried again {'once' if times == 1 else f'{times} times'} {how}, "
            f"last at {self.at:%Y-%m-%d %H:%M} UTC: {'; '.join(dict.fromkeys(self.reasons))}"
        )


def note_retried(step: str, place: str, reasons: list[str], *, succeeded: bool) -> None:
    """Notes which step was tried again, in a file of its own, if there is a run.

    Where it cannot be written nothing is raised: what the step itself had to say matters more.

    Args:
        step: Name of the step.
        place: The run directory.
        reasons: Why each attempt but the last had failed, in order.
        succeeded: Whether the last attempt succeeded.
    """
    now = datetime.datetime.now(datetime.UTC)
    noted = StepRetries(step=step, at=now, reasons=tuple(reasons), succeeded=succeeded)
    data = noted.model_dump_json(indent=1).encode()
    with contextlib.suppress(OSError, ImportError, UserError):
        run = RunDirectory(place)
        if run.exists():
            name = f"{step}-{files.digest(data)[:12]}.json"
            files.write_atomically(run.root / _FOLDER / name, data)


def read_retries(run: RunDirectory) -> list[StepRetries]:
    """Returns the steps that were tried again, in the order of time.

    Notes that cannot be read are left out.
    """
    found = []
    for path in files.matching(run.root, f"{_FOLDER}/*.json"):
        try:
            found.append(StepRetries.model_validate_json(files.read_at_most(path)))
        except (OSError, ImportError, UserError, pydantic.ValidationError):
            continue  # a report says what it can
    return sorted(found, key=lambda one: one.at)
