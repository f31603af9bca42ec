"""The `execution` and `environments` blocks: order, retries, conditions and library versions."""

import hashlib
import json
import re
from typing import Annotated, Final, Literal, Self

import pydantic

from orbax_bench_core.config.base import ConfigModel
from orbax_bench_core.errors import has_credentials, redacted

Cache = Literal["warm", "cold"]
HostMemory = Literal["reused", "fresh", "default"]

_PLACES = ("-", ".", "~", "git+")
_FILES = (".whl", ".zip", ".tar.gz")
_VERSION = r"\s*(?:===|==|~=|!=|<=|>=|<|>)\s*[\w.*+!-]+\s*"
# Name, extras, versions and markers, as PEP 508 has them; environments need no `packaging`.
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?\s*(?:\[[\w\s,.-]*\])?"
    rf"(?:{_VERSION}(?:,{_VERSION})*)?(?:\s*;.+)?"
)


def checked_requirement(given: str, environment: str) -> None:
    """Checks what can be checked of a requirement before anything is installed.

    A path, a URL or an option of pip is looked at when the environment is made.

    Raises:
        ValueError: It has credentials, or no form that pip takes; the message names `environment`.
    """
    text = given.strip()
    if has_credentials(text):
        raise ValueError(
            f"{environment}: {redacted(text)} has credentials, which every record would keep; "
            "write ${NAME} in their place, a variable of the environment, or use ~/.netrc"
        )
    if "/" in text or "@" in text or text.startswith(_PLACES) or text.endswith(_FILES):
        return
    if _REQUIREMENT.fullmatch(text) is None:
        raise ValueError(
            f"{environment}: {given!r} is not a requirement; write name==version, such as "
            "jax==0.10.2, a URL, or the path of a wheel or a folder"
        )


MAX_PROCESSES: Final = 100_000
MAX_WARMUPS: Final = 100_000
MAX_REPEATS: Final = 100_000
"""Repeats of a point; at one a second they take more than a day."""
MAX_RETRIES: Final = 1_000
MAX_TIMEOUT_S: Final = 31_536_000.0
"""A year: JSON has no infinity, and every process of a run reads it there."""
MAX_SEED: Final = 2**63 - 1
MAX_POINTS: Final = 10_000
"""Sweep points of a suite that does not say how many it may have."""
MOST_POINTS: Final = 100_000
"""Sweep points of any suite: the run.json of so many has 70 MB."""


_OWN: Final = 4
_PER_PROCESS: Final = 2
"""Rounds that have a worker process of their own, and how many of the later ones share one."""


class EnvironmentConfig(ConfigModel):
    """One item of `environments`: a virtual environment to make, or an existing interpreter.

    Attributes:
        name: What arms and reports call it.
        requirements: What to install, as pip spells it: exact versions, a wheel, or a local path.
        interpreter: Path of an existing Python with everything installed.
    """

    name: Annotated[str, pydantic.Field(min_length=1, pattern=r"^[A-Za-z0-9][\w.+-]*$")]
    requirements: Annotated[tuple[str, ...], pydantic.Field(strict=False)] = ()
    interpreter: str | None = None

    @pydantic.model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.requirements) == (self.interpreter is not None):
            raise ValueError("give either requirements or an interpreter")
        return self

    @property
    def identity(self) -> str:
        """SHA-256 over what it consists of, in hex; its name is not part of that."""
        content = {"requirements": list(self.requirements), "interpreter": self.interpreter}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Conditions(ConfigModel):
    """Conditions that are controlled while a sweep point is measured.

    Attributes:
        cache: Whether a checkpoint's pages are in the page cache when a load begins.
        host_memory: Whether the worker's allocator keeps freed memory (`reused`), gives it back at
            once (`fresh`), or does as the C library pleases (`default`). On virtual machines that
            back memory lazily this moves a load by a factor of four.
        durable: Whether a save also counts until all its files are on stable storage.
        x64: Whether JAX has 64-bit types, as in Orbax's own framework.
    """

    cache: Cache = "warm"
    host_memory: HostMemory = "reused"
    durable: bool = False
    x64: bool = True


def _off_is_a_word(value: object) -> object:
    # YAML 1.1 reads a bare `off` as the boolean false.
    return "off" if value is False else value


def _one_or_more(value: object) -> object:
    if value == []:
        raise ValueError("an empty list leaves nothing to run; give at least one item")
    return tuple(value) if isinstance(value, list | tuple) else (value,)


class ExecutionConfig(ConfigModel):
    """Execution of a suite. Every key is optional.

    Attributes:
        warmups: Repeats of each point that a fresh worker makes and discards first.
        order: `interleaved` runs repeat 0 of every point, then repeat 1, shuffled within each
            round, so that drift of the machine falls on all points alike; `sequential` finishes
            one point before the next.
        rounds_per_process: Interleaved rounds after which new workers start, where there are points
            to choose among: what an option does differs from one process to the next. `auto` gives
            each of the first four rounds workers of its own, and then two rounds each.
        seed: Seed of the shuffle.
        processes: Host processes that run a point together, joined by `jax.distributed`; a list is
            swept.
        timeout_s: Seconds that one repeat may take before its worker is stopped.
        retries: How often a failed repeat is tried again before it is recorded as failed.
        cache: State of the page cache before a load, `warm` or `cold`; a list is swept.
        host_memory: Whether workers keep freed memory (`reused`), give it back at once (`fresh`),
            or do as the C library pleases (`default`); a list is swept.
        durable: Whether saves are also timed until all their files are on stable storage.
        x64: Whether JAX has 64-bit types.
        max_points: Sweep points that the suite may have, pairs counted once, at most 100,000. A
            suite of more is refused before anything runs, since a list too many multiplies them.
        verify: `digest` compares restored values with what was saved, outside the clock.
        keep_data: Whether the checkpoint of each repeat stays in the run directory. Otherwise it is
            deleted after its repeat, as a training job with `max_to_keep` does: the next save then
            writes into memory that the page cache had before, not into memory never touched.
    """

    warmups: Annotated[int, pydantic.Field(ge=0, le=MAX_WARMUPS)] = 1
    order: Literal["interleaved", "sequential"] = "interleaved"
    rounds_per_process: Annotated[
        Annotated[int, pydantic.Field(gt=0, le=MAX_REPEATS)] | Literal["auto"],
        pydantic.Field(exclude_if=lambda value: value == "auto"),
    ] = "auto"
    seed: Annotated[int, pydantic.Field(ge=-MAX_SEED, le=MAX_SEED)] = 0
    processes: Annotated[
        tuple[Annotated[int, pydantic.Field(gt=0, le=MAX_PROCESSES)], ...],
        pydantic.BeforeValidator(_one_or_more),
    ] = (1,)
    timeout_s: Annotated[float, pydantic.Field(gt=0, le=MAX_TIMEOUT_S)] = 900.0
    retries: Annotated[int, pydantic.Field(ge=0, le=MAX_RETRIES)] = 1
    cache: Annotated[tuple[Cache, ...], pydantic.BeforeValidator(_one_or_more)] = ("warm",)
    host_memory: Annotated[tuple[HostMemory, ...], pydantic.BeforeValidator(_one_or_more)] = (
        "reused",
    )
    durable: bool = False
    x64: bool = True
    # It came later: what is written of a suite that does not give it stays as it was.
    max_points: Annotated[
        int, pydantic.Field(gt=0, le=MOST_POINTS, exclude_if=lambda value: value == MAX_POINTS)
    ] = MAX_POINTS
    verify: Annotated[Literal["digest", "off"], pydantic.BeforeValidator(_off_is_a_word)] = "digest"
    keep_data: Annotated[bool, pydantic.Field(exclude_if=lambda value: not value)] = False

    @pydantic.field_serializer("host_memory")
    def _as_it_was_given(self, value: tuple[HostMemory, ...]) -> object:
        # A single one is written as before it could be swept.
        return value[0] if len(value) == 1 else value

    def process_of(self, round_: int) -> int:
        """Returns the number of the worker process that measures an interleaved round."""
        if self.rounds_per_process == "auto":
            # Two processes say little of a third, and many rounds pay for more than one start.
            return round_ if round_ < _OWN else _OWN + (round_ - _OWN) // _PER_PROCESS
        return round_ // self.rounds_per_process

    def rounds_of(self, processes: int) -> int:
        """Returns how many interleaved rounds so many worker processes measure."""
        if self.rounds_per_process == "auto":
            return processes + (_PER_PROCESS - 1) * max(0, processes - _OWN)
        return processes * self.rounds_per_process

    @property
    def conditions(self) -> tuple[Conditions, ...]:
        """Every combination of conditions that is swept."""
        return tuple(
            Conditions(cache=cache, host_memory=memory, durable=self.durable, x64=self.x64)
            for cache in dict.fromkeys(self.cache)
            for memory in dict.fromkeys(self.host_memory)
        )
