"""Evidence of options: what a repeat has left, and what is found by looking at it."""

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from orbax_bench_core.files import AnyPath
from orbax_bench_core.inventory import StoredCheckpoint, read_saved_trees
from orbax_bench_core.measure import STEPS, TIME, Heard, Sample
from orbax_bench_core.records import Effect

LOG: Final = "Orbax's log"
EVENTS: Final = "Orbax's events"
FILES: Final = "files"
SAMPLES: Final = "operations measured"
HANDLER: Final = "/jax/orbax/array_handler/init"
BROADCAST: Final = "/jax/checkpoint/read/broadcast_duration_secs"


class ProvenEffect(NamedTuple):
    """What is proven of one option, and by what."""

    state: Effect
    proof: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptionEvidence:
    """Traces that a repeat left."""

    options: Mapping[str, Any]  # every option of the point
    directory: AnyPath  # where it left its checkpoints
    traces: AnyPath  # how the folders of the profiler's traces of this point begin
    begun: float = 0.0  # when it began, in seconds since 1970
    samples: tuple[Sample, ...]  # what it measured
    heard: Heard  # events of Orbax with their labels
    lines: tuple[str, ...]  # lines of Orbax's own log that tell settings

    @cached_property
    def trees(self) -> tuple[StoredCheckpoint, ...]:
        """What it left on storage."""
        try:
            return read_saved_trees(self.directory)
        except OSError:
            return ()

    @property
    def checkpoints(self) -> list[AnyPath]:
        """Folders of the checkpoints that hold these trees as an item."""
        return [type(self.directory)(tree.root).parent for tree in self.trees]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each operation was measured."""
        return Counter(sample.operation for sample in self.samples if sample.metric == TIME)

    def labels(self, name: str) -> set[str]:
        """Values of one label of the array handlers that were made."""
        return {
            str(value).lower()
            for event, labels in self.heard
            for label, value in labels
            if event == HANDLER and label == name
        }

    def said(self, pattern: str) -> set[str]:
        """What the group of a pattern is in the lines of the log."""
        return {text for line in self.lines for text in re.findall(pattern, line)}

    def steps(self, operation: str) -> int:
        """Steps of a measured phase of training."""
        return sum(
            int(sample.value)
            for sample in self.samples
            if sample.operation == operation and sample.metric == STEPS.name
        )

    def wrote(self, file: AnyPath) -> bool:
        """Tells whether a file was written since the repeat began."""
        if "://" in str(file):
            return bool(file.stat().mtime >= int(self.begun))  # an object store counts seconds
        return Path(file).stat().st_mtime >= self.begun

    @property
    def broadcast(self) -> bool:
        """Whether Orbax has sent arrays from one replica to others."""
        return any(event == BROADCAST for event, _ in self.heard)


Rule = Callable[[Any, OptionEvidence], ProvenEffect]


def unproved(why: str) -> ProvenEffect:
    """Returns the finding that nothing tells, and why."""
    return ProvenEffect("not proved", why)


def judged(holds: bool, proof: str) -> ProvenEffect:
    """Returns a finding of what is in effect exactly where it holds."""
    return ProvenEffect("in effect" if holds else "not in effect", proof)


def only_if(holds: bool, proof: str) -> ProvenEffect:
    """Returns a finding of what, where it does not hold, proves nothing."""
    return ProvenEffect("in effect", proof) if holds else unproved(proof)


class Proof(NamedTuple):
    """How an option is proved."""

    by: str  # where that is read, for people
    rule: Rule  # what reads it
