"""Effects of options: what a repeat proves of each, and the refusal of one without effect."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.files import AnyPath
from orbax_bench_core.measure import Heard, Sample, hearing_events
from orbax_bench_core.records import OptionEffect
from orbax_bench_core.sweep import is_builtin
from orbax_bench_core.worker import proofs
from orbax_bench_core.worker.runtime import importing

if TYPE_CHECKING:
    from orbax_bench_core.sweep import SweepPoint

_OF_THE_HARNESS: Final = (
    *("enable_trace", "trace_every_repeat", "enable_xprof"),
    "metric_tracemalloc_enabled",
)
"""Options that ask nothing of a library: they are told of where the suite gives them."""

_LOGGER: Final = "absl"

COLOCATED_EFFECT: Final = OptionEffect(
    option="load_with_colocated_python", asked=True, state="in effect", proof="JAX runs on Pathways"
)
"""What is proven of reading beside the devices: elsewhere such a point is skipped."""


class OptionWithoutEffect(Exception):
    """A repeat whose numbers would stand under a false name: an option did not do what it says."""

    def __init__(self, effect: OptionEffect) -> None:
        super().__init__(
            f"{effect.option}: {json.dumps(effect.asked)} is not in effect: {effect.proof}; leave "
            "it out, or give it where it has an effect, for example to another release of Orbax"
        )


@functools.lru_cache(maxsize=1000)  # inside the clock, and formats are few
def _tells_settings(text: str) -> bool:
    return any(part in text for part in proofs.LINES)


class EffectListener(logging.Filter):
    """Listener to one repeat: keeps what Orbax says of itself, in events and in its log."""

    def __init__(self, options: Iterable[str]) -> None:
        """Begins with what Orbax says when it is imported already behind it."""
        super().__init__()
        if not {"use_replica_parallel", "use_load_and_broadcast"}.isdisjoint(options):
            # Its import makes handlers too, with its own defaults, which say nothing of ours.
            with importing("orbax.checkpoint"):
                import orbax.checkpoint  # noqa: F401
        self._begun = time.time()
        self._heard: Heard = {}
        self._lines: dict[str, None] = {}
        self._level = logging.NOTSET

    def filter(self, record: logging.LogRecord) -> bool:
        """Keeps the lines that tell settings, and lets on what was let on before."""
        if isinstance(record.msg, str) and _tells_settings(record.msg):
            self._lines[record.getMessage()] = None
        return record.levelno >= self._level

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Listens while the context is open."""
        logger = logging.getLogger(_LOGGER)
        # Flags of Orbax that a benchmark sets have made it say warnings alone in this process.
        own, self._level = logger.level, logger.getEffectiveLevel()
        logger.setLevel(min(self._level, logging.INFO))
        logger.addFilter(self)
        try:
            with hearing_events() as self._heard:
                yield
        finally:
            logger.removeFilter(self)
            logger.setLevel(own)

    def effects(
        self, point: SweepPoint, directory: AnyPath, samples: Iterable[Sample], traces: AnyPath
    ) -> tuple[OptionEffect, ...]:
        """Returns the proof of each option that files, samples, events or the log can show.

        Args:
            point: What was measured.
            directory: Where the repeat left its checkpoints.
            samples: What it measured.
            traces: How the folders of the profiler's traces of this point begin.
        """
        evidence = proofs.OptionEvidence(
            options=point.options,
            directory=directory,
            traces=traces,
            begun=self._begun,
            samples=tuple(samples),
            heard=self._heard,
            lines=tuple(self._lines),
        )
        own = is_builtin(point.benchmark)
        return tuple(
            _effect(point.benchmark if own else "", option, asked, evidence)
            for option, asked in point.options.items()
            if (own and option in proofs.PROOFS and option not in _OF_THE_HARNESS)
            or (option in point.given and (own or option not in _OF_THE_HARNESS))
        )


def require_effects(effects: Iterable[OptionEffect], given: Iterable[str]) -> None:
    """Refuses a repeat whose numbers would stand under a false name.

    Args:
        effects: What is proven of each option.
        given: Names of the options that the suite gives; defaults may have no effect.

    Raises:
        OptionWithoutEffect: One that is given is disproven.
    """
    asked_for = set(given)
    for effect in effects:
        if effect.state == "not in effect" and effect.option in asked_for:
            raise OptionWithoutEffect(effect)


def _effect(
    benchmark: str, option: str, asked: Any, evidence: proofs.OptionEvidence
) -> OptionEffect:
    """Says what is proven of an option; of a class of somebody's own only its author knows it."""
    found = (
        proofs.prove(benchmark, option, asked, evidence)
        if benchmark
        else proofs.unproved(proofs.UNKNOWN)
    )
    return OptionEffect(option=option, asked=asked, state=found.state, proof=found.proof)
