"""How the run of a pipeline ended: what its exit task tells the submitter through the service.

The submitting machine may not read the run directory, as on a claim. Kubeflow's API gives it the
log of a step, Vertex AI the metadata of an artifact: both hold the same.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
from collections.abc import Mapping
from typing import Final, Self

import pydantic

from orbax_bench_core.exit_codes import CODES, Exit, State
from orbax_bench_core.files import ResultModel

ENDING: Final = "orbax-bench-ending: "
"""Before the line of a log that holds an ending."""

_MOST_REASONS: Final = 20
_MOST_CHARACTERS: Final = 500
_MOST_PAGE: Final = 2**20
"""Bytes of a compressed page that go into a log, which a node keeps 10 MiB of."""


class RunEnding(ResultModel):
    """State of a run, why, and its page."""

    state: State
    reasons: tuple[str, ...]
    directory: str
    page: str = ""  # HTML, by gzip and base64; empty if it is elsewhere

    @classmethod
    def of(cls, state: State, reasons: tuple[str, ...], directory: str, page: bytes = b"") -> Self:
        """Returns an ending with as many reasons, as long, as a log and an artifact take.

        Args:
            state: State of the run.
            reasons: Why it is in that state, the most important first. Only the first are kept,
                each cut, and a last line counts the others.
            directory: The run directory.
            page: The report as HTML; one that stays too large when zipped is left out.
        """
        shown = [reason[:_MOST_CHARACTERS] for reason in reasons[:_MOST_REASONS]]
        if len(reasons) > len(shown):
            shown.append(f"and {len(reasons) - len(shown)} more")
        zipped = base64.b64encode(gzip.compress(page, mtime=0)).decode() if page else ""
        kept = zipped if len(zipped) <= _MOST_PAGE else ""
        return cls(state=state, reasons=tuple(shown), directory=directory, page=kept)

    @classmethod
    def in_log(cls, log: str) -> Self | None:
        """Returns the last ending in a log, or None where it has none."""
        lines = [line for line in log.splitlines() if ENDING in line]
        try:
            return cls.model_validate_json(lines[-1].partition(ENDING)[2]) if lines else None
        except pydantic.ValidationError:
            return None

    @classmethod
    def in_metadata(cls, metadata: Mapping[str, object]) -> Self | None:
        """Returns the ending in the metadata of the artifact `ending`, or None if there is none."""
        try:
            reasons = json.loads(str(metadata["reasons"]))
            told = {"state": metadata["state"], "directory": metadata["directory"]}
            return cls.model_validate({**told, "reasons": reasons})
        except (KeyError, ValueError):
            return None

    @property
    def words(self) -> str:
        """The state and the reasons, as a line."""
        return f"{self.state}: {'; '.join(self.reasons)}"

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the artifact `ending`, as text; the page is an artifact of its own."""
        reasons = json.dumps(self.reasons)
        return {"state": self.state, "reasons": reasons, "directory": self.directory}

    @property
    def line(self) -> str:
        """The line of a log that `in_log` reads."""
        return f"{ENDING}{self.model_dump_json()}"

    @property
    def html(self) -> bytes | None:
        """The page, or None where it is elsewhere."""
        try:
            return gzip.decompress(base64.b64decode(self.page)) if self.page else None
        except (OSError, EOFError, binascii.Error):
            return None

    @property
    def code(self) -> int:
        """The exit code of a command whose pipeline failed so."""
        return int(CODES[self.state] or Exit.FAILED)
