"""Parser of records: one pass over the JSON, and each part that records share only once.

The repeats of a point have the same point, and those of a run the same provenance and the same
samples but for their values. A part whose bytes were validated before is not validated again.
Whatever is not as we write it goes to the model of a record as a whole, which decides.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import msgspec
import pydantic

from orbax_bench_core.config import MAX_PROCESSES, Arm
from orbax_bench_core.interrupts import uninterrupted
from orbax_bench_core.measure import TIME
from orbax_bench_core.records.layout import Columns, Layout, Samples, layout_of
from orbax_bench_core.records.record import (
    LIVES,
    MOST_INDEX,
    MOST_SECONDS,
    MOST_VALUE,
    Moment,
    Record,
    Status,
    is_duration,
    whole_record,
)

_VALUE: Final = re.compile(rb'"value": ([^,]*),')
_SOME_VALUE: Final = b'"value": 0,'
_SHARED: Final = 64
"""Parts of a kind that are kept: those of a point, its run or a layout of it are the next ones."""


_Index = Annotated[int, msgspec.Meta(ge=0, le=MOST_INDEX)]


class _Parts(msgspec.Struct, forbid_unknown_fields=True):
    """A record of this version whose nested parts are not read yet."""

    schema_version: Literal[3]
    run_id: str
    suite: str
    point_id: str
    point_name: str
    point: msgspec.Raw
    repeat: _Index
    warmup: bool
    arm: Arm | None
    block: _Index | None
    life: Annotated[int, msgspec.Meta(ge=0, lt=LIVES)] | None
    host: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PROCESSES)]
    num_hosts: Annotated[int, msgspec.Meta(ge=1, le=MAX_PROCESSES)]
    status: Status
    started_at: msgspec.Raw
    duration_s: Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS)]
    samples: msgspec.Raw
    notes: msgspec.Raw
    error: msgspec.Raw
    state: msgspec.Raw
    inventory: msgspec.Raw
    provenance: msgspec.Raw
    worker: str
    attempts: msgspec.Raw
    effects: msgspec.Raw
    store_troubles: msgspec.Raw


_NESTED: Final = tuple(
    name for name, kind in _Parts.__annotations__.items() if kind == "msgspec.Raw"
)

_FIELDS: Final = set(_Parts.__annotations__)
_DECODER: Final = msgspec.json.Decoder(_Parts)
_VALUES: Final = msgspec.json.Decoder(list[float])
with uninterrupted():
    _TIME: Final = pydantic.TypeAdapter(Moment)


def parsed_record(data: bytes) -> Record | None:
    """Returns a record, or None of what is torn or of another schema version."""
    try:
        return _usual(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    return whole_record(data)


def _usual(data: bytes) -> Record:
    """Returns a record that is as we write them."""
    content = msgspec.structs.asdict(_DECODER.decode(data))
    for name, read in _READERS:
        content[name] = read(bytes(content[name]))
    return _made(content)


def _columns(data: bytes) -> Columns:
    """Returns samples by column: what stands around their values is looked up."""
    around = _VALUE.split(data)
    layout = _layout(tuple(around[::2]))
    values = _VALUES.decode(b"[%b]" % b",".join(around[1::2]))
    if len(values) != len(layout.metrics):
        raise ValueError("what looks like a value is none")
    if not all(is_duration(values[place]) for place in layout.places(TIME)):
        raise ValueError("nothing takes such a time")
    if values and not -MOST_VALUE <= min(values) <= max(values) <= MOST_VALUE:
        raise ValueError("no metric has such a value")
    return Columns(layout, values)


@functools.lru_cache(maxsize=_SHARED)
def _layout(around: tuple[bytes, ...]) -> Layout:
    """Returns the layout of samples by what stands around their values."""
    samples = _adapter("samples").validate_json(_SOME_VALUE.join(around))
    return layout_of(tuple((s.operation, s.occurrence, s.metric, s.unit) for s in samples))


@functools.cache
def _adapter(name: str) -> pydantic.TypeAdapter[Any]:
    with uninterrupted():
        return pydantic.TypeAdapter(Record.model_fields[name].rebuild_annotation())


def _samples(data: bytes) -> Samples:
    return Samples(_columns(data))


def _reader(name: str) -> Callable[[bytes], Any]:
    """Returns what reads a part of a record; nobody changes one, so that records share it."""
    if name == "samples":
        return _samples
    if name == "started_at":
        return _TIME.validate_json
    return functools.lru_cache(maxsize=_SHARED)(lambda data: _adapter(name).validate_json(data))


_READERS: Final = tuple((name, _reader(name)) for name in _NESTED)


def _made(content: dict[str, Any]) -> Record:
    """Returns the record of content that was validated part by part, as `model_construct` does."""
    record = Record.__new__(Record)
    put = object.__setattr__
    put(record, "__dict__", content)
    put(record, "__pydantic_fields_set__", _FIELDS.copy())
    put(record, "__pydantic_extra__", None)
    put(record, "__pydantic_private__", None)
    return record
