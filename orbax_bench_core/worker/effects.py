"""Effects of options: proofs from files, samples, Orbax's events and its log, after a repeat."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from orbax_bench_core.inventory import SavedTree, read_saved_trees
from orbax_bench_core.measure import Heard, Sample, hearing_events
from orbax_bench_core.records import Effect, OptionEffect
from orbax_bench_core.worker.garbage import importing

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.sweep import SweepPoint

_BUILT_IN: Final = "orbax_bench_core.benchmarks."
_OF_THE_HARNESS: Final = (
    *("enable_trace", "trace_every_repeat", "enable_xprof"),
    "metric_tracemalloc_enabled",
)
"""Options that ask nothing of a library."""

_HANDLER: Final = "/jax/orbax/array_handler/init"
_BROADCAST: Final = "/jax/checkpoint/read/broadcast_duration_secs"
_LOGGER: Final = "absl"
_LINE: Final = "Created BasePyTreeCheckpointHandler"
_FLOATING: Final = ("float", "bfloat")
_LOADS: Final = ("load", "restore")
_GIB: Final = 2**30
_GB: Final = 10**9

COLOCATED_EFFECT: Final = OptionEffect(
    option="load_with_colocated_python",
    asked=True,
    state="in effect",
    proof="JAX runs on Pathways",
)
"""What is proven of reading beside the devices: elsewhere such a point is skipped."""


class OptionWithoutEffect(Exception):
    """A repeat whose numbers would stand under a false name: an option did not do what it says."""

    def __init__(self, effect: OptionEffect) -> None:
        super().__init__(
            f"{effect.option}: {json.dumps(effect.asked)} is not in effect: {effect.proof}; leave "
            "it out, or give it where it has an effect, for example to another release of Orbax"
        )


class _Finding(NamedTuple):
    state: Effect
    proof: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Evidence:
    """Traces that a repeat left.

    Attributes:
        options: Every option of the point.
        trees: What it left on storage.
        operations: Names of its measured blocks.
        heard: Events of Orbax with their labels.
        lines: Orbax's own log lines on the handlers that it made.
    """

    options: Mapping[str, Any]
    trees: tuple[SavedTree, ...]
    operations: frozenset[str]
    heard: Heard
    lines: tuple[str, ...]

    def labels(self, name: str) -> set[str]:
        """Values of one label of the array handlers that were made."""
        return {
            str(value).lower()
            for event, labels in self.heard
            for label, value in labels
            if event == _HANDLER and label == name
        }

    @property
    def broadcast(self) -> bool:
        """Whether Orbax has sent arrays from one replica to others."""
        return any(event == _BROADCAST for event, _ in self.heard)


class Witness(logging.Handler):
    """Listener to one repeat: keeps what Orbax says of itself, in events and in its log."""

    def __init__(self, options: Iterable[str]) -> None:
        """Begins with what Orbax says when it is imported already behind it.

        Args:
            options: Names of the options of the repeat.
        """
        super().__init__(logging.INFO)
        if not {"use_replica_parallel", "use_load_and_broadcast"}.isdisjoint(options):
            # Its import makes handlers too, with its own defaults, which say nothing of ours.
            with importing("orbax.checkpoint"):
                import orbax.checkpoint  # noqa: F401
        self._heard: Heard = {}
        self._lines: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the line that tells a handler's settings."""
        if isinstance(record.msg, str) and record.msg.startswith(_LINE):
            self._lines[record.getMessage()] = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Listens while the context is open."""
        logger = logging.getLogger(_LOGGER)
        logger.addHandler(self)
        try:
            with hearing_events() as self._heard:
                yield
        finally:
            logger.removeHandler(self)

    def effects(
        self, point: SweepPoint, directory: epath.Path, samples: Iterable[Sample]
    ) -> tuple[OptionEffect, ...]:
        """Returns what is proven of each option that files, samples, events or the log can tell.

        Args:
            point: What was measured.
            directory: Where the repeat left its checkpoints.
            samples: What it measured.
        """
        try:
            trees = read_saved_trees(directory)
        except OSError:
            trees = ()
        evidence = _Evidence(
            options=point.options,
            trees=trees,
            operations=frozenset(sample.operation for sample in samples),
            heard=self._heard,
            lines=tuple(self._lines),
        )
        known = _RULES if point.benchmark.startswith(_BUILT_IN) else {}
        return tuple(
            _effect(option, asked, known.get(option), evidence)
            for option, asked in point.options.items()
            if option in known or (option in point.given and option not in _OF_THE_HARNESS)
        )


def require_effects(effects: Iterable[OptionEffect], given: Iterable[str]) -> None:
    """Refuses a repeat whose numbers would stand under a false name.

    Args:
        effects: What is proven.
        given: The options that the suite gives; what is left at its default need not do anything.

    Raises:
        OptionWithoutEffect: One of them is proven not to be in effect.
    """
    asked_for = set(given)
    for effect in effects:
        if effect.state == "not in effect" and effect.option in asked_for:
            raise OptionWithoutEffect(effect)


_Rule = Callable[[Any, _Evidence], _Finding]
_Read = Callable[[SavedTree], bool | None]


def _effect(option: str, asked: Any, rule: _Rule | None, evidence: _Evidence) -> OptionEffect:
    if rule is None:
        found = _unknown("neither files nor events nor logs are known to tell")
    else:
        found = rule(asked, evidence)
    return OptionEffect(option=option, asked=asked, state=found.state, proof=found.proof)


def _unknown(why: str) -> _Finding:
    return _Finding("not decidable", why)


def _by_trees(asked: Any, evidence: _Evidence, read: _Read, proofs: tuple[str, str]) -> _Finding:
    """Compares with what every tree says; `proofs` are of what is, and of what is not."""
    found = {value for tree in evidence.trees if (value := read(tree)) is not None}
    if not found:
        return _unknown("the repeat left no tree of arrays on storage that tells it")
    if len(found) > 1:
        return _unknown("the trees that the repeat left differ in it")
    (value,) = found
    state: Effect = "in effect" if value == bool(asked) else "not in effect"
    return _Finding(state, proofs[0] if value else proofs[1])


def _all_alike(values: Iterable[bool]) -> bool | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _ocdbt(asked: Any, evidence: _Evidence) -> _Finding:
    proofs = ("the arrays lie in one database, manifest.ocdbt", "there is no manifest.ocdbt")
    return _by_trees(asked, evidence, lambda tree: tree.ocdbt, proofs)


def _zarr3(asked: Any, evidence: _Evidence) -> _Finding:
    def read(tree: SavedTree) -> bool | None:
        return _all_alike(array.zarr_format == 3 for array in tree.arrays)

    return _by_trees(asked, evidence, read, ("every array has a zarr.json", "arrays have .zarray"))


def _compression(asked: Any, evidence: _Evidence) -> _Finding:
    def read(tree: SavedTree) -> bool | None:
        return _all_alike(array.compressor is not None for array in tree.arrays)

    codecs = {array.compressor for tree in evidence.trees for array in tree.arrays} - {None}
    proofs = (
        f"codec of the arrays: {', '.join(map(str, codecs))}",
        "the arrays have no compressor",
    )
    return _by_trees(asked, evidence, read, proofs)


def _array_metadata(asked: Any, evidence: _Evidence) -> _Finding:
    proofs = ("there are array_metadatas", "there are no array_metadatas")
    return _by_trees(asked, evidence, lambda tree: tree.array_metadata, proofs)


def _dtype(asked: Any, evidence: _Evidence) -> _Finding:
    if asked is None:
        return _unknown("files do not say which dtypes the arrays had before they were saved")
    # Python's own numbers, which nobody casts, lie there as arrays without axes.
    found = {
        array.dtype
        for tree in evidence.trees
        for array in tree.arrays
        if array.shape and array.dtype.startswith(_FLOATING)
    }
    if not found:
        return _unknown("the repeat left no floating-point array on storage")
    state: Effect = "in effect" if found == {asked} else "not in effect"
    return _Finding(state, f"floating-point arrays on storage: {', '.join(sorted(found))}")


def _chunks(asked: Any, evidence: _Evidence) -> _Finding:
    saved = [array for tree in evidence.trees for array in tree.arrays]
    arrays = [array for array in saved if array.whole is not None]  # of scalars nobody says it
    whole = [array.whole for array in arrays]
    if not arrays:
        return _unknown("the repeat left no array whose chunks and shards are known")
    largest = max(array.chunk_bytes for array in arrays)
    if asked is None:
        if all(whole):
            return _Finding("in effect", "every array has one chunk per shard")
        return _unknown("some arrays have several chunks per shard, by Orbax's own limit")
    if largest > asked:
        return _Finding("not in effect", f"the largest chunk has {largest} bytes")
    if all(whole):
        return _unknown(f"no shard is larger than its one chunk, of at most {largest} bytes")
    return _Finding("in effect", f"the largest chunk has {largest} bytes")


def _replica_parallel(asked: Any, evidence: _Evidence) -> _Finding:
    return _by_label(asked, evidence, "use_replica_parallel")


def _by_label(asked: Any, evidence: _Evidence, name: str) -> _Finding:
    found = evidence.labels(name)
    if not found:
        return _unknown(f"Orbax fired no event with the label {name}")
    if len(found) > 1:
        return _unknown(f"Orbax made array handlers with and without {name}")
    state: Effect = "in effect" if found == {str(bool(asked)).lower()} else "not in effect"
    return _Finding(state, f"Orbax's event {_HANDLER} says {name}={found.pop()}")


def _separate_folder(asked: Any, evidence: _Evidence) -> _Finding:
    if any(tree.replica_folders for tree in evidence.trees):
        state: Effect = "in effect" if asked else "not in effect"
        return _Finding(state, "there are directories ocdbt.process_replica_*")
    found = _by_label(asked, evidence, "enable_replica_parallel_separate_folder")
    if asked and found.state == "in effect":
        return _unknown("Orbax was told so, and no replica had a part of an array to write")
    if not asked and evidence.trees:
        return _Finding("in effect", "there are no directories ocdbt.process_replica_*")
    return found


def _broadcast(asked: Any, evidence: _Evidence) -> _Finding:
    kinds = evidence.labels("type")
    if evidence.broadcast:
        state: Effect = "in effect" if asked else "not in effect"
        return _Finding(state, f"Orbax's event {_BROADCAST} was heard")
    if not kinds or evidence.operations.isdisjoint(_LOADS):
        return _unknown("no load was measured, or Orbax fired no event of its array handlers")
    if kinds == {"arrayhandler"}:
        proof = "Orbax made handlers of type ArrayHandler only, and no broadcast was heard"
        return _Finding("not in effect" if asked else "in effect", proof)
    return _unknown("Orbax made a handler that broadcasts, and no broadcast was heard")


def _async(asked: Any, evidence: _Evidence) -> _Finding:
    if asked is None or "save" not in evidence.operations:
        return _unknown("no save was measured that it could hold for")
    background = "save_background" in evidence.operations
    state: Effect = "in effect" if background == bool(asked) else "not in effect"
    proof = "the save has a part in the background" if background else "all of the save blocks"
    return _Finding(state, f"{proof}, by the operations measured")


def _async_by_first_name(asked: Any, evidence: _Evidence) -> _Finding:
    if evidence.options.get("enable_async_save") is not None:
        return _unknown("enable_async_save is given, and decides")
    return _async(asked, evidence)


def _limit(key: str) -> _Rule:
    pattern = re.compile(rf"{key}[:=] ?(None|\d+)")

    def rule(asked: Any, evidence: _Evidence) -> _Finding:
        found = {text for line in evidence.lines for text in pattern.findall(line)}
        if not found:
            return _unknown(f"Orbax's log line on {key} was not seen")
        # Releases and interfaces of Orbax differ in what a GB is.
        wanted = {"None"} if asked is None else {str(int(asked * unit)) for unit in (_GIB, _GB)}
        said = f"Orbax's log says {key}: {', '.join(sorted(found))}"
        if found & wanted:
            return _Finding("in effect", said)
        return _unknown(said) if asked is None else _Finding("not in effect", said)

    return rule


def _colocated(asked: Any, evidence: _Evidence) -> _Finding:
    found = evidence.labels("dispatcher")
    proof = f"Orbax's event {_HANDLER} says dispatcher={', '.join(sorted(found))}"
    if asked and found - {"none"}:
        return _Finding("in effect", proof)
    if not asked and found == {"none"}:
        return _Finding("in effect", proof)
    return _unknown(proof if found else "Orbax fired no event that names its dispatcher")


_RULES: Final[Mapping[str, _Rule]] = MappingProxyType(
    {
        "async_enabled": _async_by_first_name,
        "enable_async_save": _async,
        "use_ocdbt": _ocdbt,
        "use_zarr3": _zarr3,
        "use_compression": _compression,
        "use_replica_parallel": _replica_parallel,
        "enable_replica_parallel_separate_folder": _separate_folder,
        "use_load_and_broadcast": _broadcast,
        "chunk_byte_size": _chunks,
        "save_dtype": _dtype,
        "save_concurrent_gb": _limit("save_concurrent_bytes"),
        "restore_concurrent_gb": _limit("restore_concurrent_bytes"),
        "use_colocated_python": _colocated,
        "use_metadata_store": _array_metadata,
    }
)
"""Proof of each option of the built-in benchmarks; the names mean the same in all of them."""
