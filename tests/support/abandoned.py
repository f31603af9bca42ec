"""Coroutines that Orbax abandons when it refuses to read, ended in the test that provokes them."""

import inspect
from collections.abc import Iterator

import pytest


@pytest.fixture
def abandoned_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes the reads of chunks that Orbax made and never began.

    It reads all chunks of an array at once. When one is refused, its event loop may stop before the
    others have begun, and Python would complain about them whenever it finds them: in another test.
    """
    from orbax.checkpoint._src.serialization import serialization

    made = []
    read = serialization._read_array_index_and_device_put

    def keep(*arguments, **options):
        made.append(read(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(serialization, "_read_array_index_and_device_put", keep)
    yield
    for coroutine in made:
        if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()
