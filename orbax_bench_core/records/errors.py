"""Errors of repeats: why one failed or was skipped, and whether another attempt may pass."""

from types import MappingProxyType
from typing import Annotated, Final, Self

import pydantic

from orbax_bench_core.errors import one_line, printable, redacted
from orbax_bench_core.files import ResultModel
from orbax_bench_core.records.tracebacks import author_place, raised_by_author, without_harness

PEER_FAILED = "PeerFailed"
"""Error type of a host that was ended because another one had failed."""

_UNMET_NEED: Final = "UnmetNeed"
"""Error type of a repeat that needs what is not here."""
NO_ENVIRONMENT: Final = "EnvironmentFailed"
"""Error type of a repeat whose environment could not be made."""
WITHOUT_EFFECT: Final = "OptionWithoutEffect"
"""Error type of a repeat whose numbers would stand under a false name."""

UNRECORDABLE: Final = "Unrecordable"
"""Error type of a repeat of which more is to be said than a record holds, or what is no text."""

_NO_FAILURES: Final = (_UNMET_NEED, NO_ENVIRONMENT, WITHOUT_EFFECT)
_CERTAIN: Final = frozenset(
    {_UNMET_NEED, NO_ENVIRONMENT, "NothingMeasured"}
    | {"ImportError", "ModuleNotFoundError", "NameError", "UnboundLocalError"}
)
"""Error types of what is missing or wrong in the code, which no further attempt changes."""
_CERTAIN_IN_OWN_CODE: Final = frozenset({"AttributeError", "TypeError"})
"""Those that a library also raises for what it was given, which may differ the next time."""

_MOST_CHARACTERS: Final = MappingProxyType({"type": 200, "message": 10_000, "traceback": 200_000})
"""Characters of a text of an error; of a longer one the beginning and the end are kept."""


def _bound_text(text: object, info: pydantic.ValidationInfo) -> object:
    """Returns as much of a text as a file holds: not halves of characters, nor 50 MB."""
    if not isinstance(text, str):
        return text
    assert info.field_name is not None
    most = _MOST_CHARACTERS[info.field_name]
    if len(text) > most:
        text = f"{text[: most // 2]}... ({len(text):,} characters) ...{text[-most // 4 :]}"
    return text.encode(errors="backslashreplace").decode()


_ErrorText = Annotated[str, pydantic.BeforeValidator(_bound_text)]


class ErrorInfo(ResultModel):
    """Reason for which a repeat failed, or was skipped.

    Attributes:
        type: Name of the exception, or `WorkerDied`, `HostLost`, `Frozen`, `Stalled`, `Timeout`,
            `PeerFailed`, `MeshDoesNotFit`, `NotOnPathways`.
        message: One line for people.
        traceback: The full traceback, or the last lines that a dead worker wrote.
    """

    type: _ErrorText
    message: _ErrorText
    traceback: _ErrorText = ""

    @pydantic.field_validator("message", "traceback")
    @classmethod
    def _without_credentials(cls, text: str) -> str:
        return redacted(text)  # a store says the address that failed, with its signature

    @classmethod
    def unmet_need(cls, message: str) -> Self:
        """Returns the error of a repeat that needs what is not here."""
        return cls(type=_UNMET_NEED, message=message)

    @property
    def unmet(self) -> bool:
        """Whether the benchmark said, before it began, what it lacks."""
        return self.type == _UNMET_NEED

    @property
    def counts(self) -> bool:
        """Whether it is a failure of what was to be measured, which says something of that.

        A need, an environment or an effect that is missing says that it cannot be measured.
        """
        return self.type not in _NO_FAILURES

    @property
    def certain(self) -> bool:
        """Whether another attempt would fail in the same way.

        So does a bug of the benchmark class, and the lack of a library, an environment or a device.
        """
        own = self.type in _CERTAIN_IN_OWN_CODE and raised_by_author(self.traceback)
        return own or self.type in _CERTAIN

    @property
    def place(self) -> str:
        """The author's line that failed, such as `my_bench.py:17`; empty if none is known."""
        return author_place(self.traceback)

    @property
    def said(self) -> str:
        """The error on one line: `ValueError: kaboom (my_bench.py:17)`."""
        text = f"{self.type}: {self.message}" + (f" ({self.place})" if self.place else "")
        return one_line(text)

    @property
    def shown(self) -> str:
        """The traceback for people: without the frames of the harness."""
        return printable(without_harness(self.traceback))
