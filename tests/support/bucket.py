"""A bucket in memory that keeps the conditions of Cloud Storage, which the emulator does not."""

import threading
import types

import pytest

exceptions = pytest.importorskip("google.api_core.exceptions")


class Blob:
    """An object of a bucket that keeps the conditions of Cloud Storage."""

    def __init__(self, bucket, name):
        self._bucket, self.name = bucket, name

    @property
    def generation(self):
        return self._bucket.objects[self.name][1]

    def exists(self):
        self._bucket.answer()
        return self.name in self._bucket.objects

    def download_as_bytes(self):
        self._bucket.answer()
        if self.name not in self._bucket.objects:
            raise exceptions.NotFound(self.name)
        return self._bucket.objects[self.name][0]

    def upload_from_string(self, data, *, content_type, if_generation_match):
        self._bucket.answer()
        with self._bucket.lock:
            now = self._bucket.objects.get(self.name, (b"", 0))[1]
            if now != if_generation_match:
                raise exceptions.PreconditionFailed(self.name)
            self._bucket.count += 1
            self._bucket.objects[self.name] = (data, self._bucket.count)


class Bucket:
    def __init__(self):
        self.objects, self.count, self.lock = {}, 0, threading.Lock()
        self.failure = None
        self.client = self

    def answer(self):
        if self.failure is not None:
            raise self.failure

    def bucket(self, name):
        return self

    def blob(self, name):
        return Blob(self, name)

    def get_blob(self, name):
        self.answer()
        return Blob(self, name) if name in self.objects else None

    def list_blobs(self, bucket, *, prefix, delimiter):
        self.answer()
        rest = [name.removeprefix(prefix) for name in self.objects if name.startswith(prefix)]
        listing = [types.SimpleNamespace(name=prefix + one) for one in rest if "/" not in one]
        listing = type("Listing", (list,), {})(listing)
        listing.prefixes = {prefix + one.split("/")[0] + "/" for one in rest if "/" in one}
        return listing


@pytest.fixture
def bucket(monkeypatch):
    """The one bucket that there is, whatever its name."""
    made = Bucket()
    monkeypatch.setattr("orbax_bench_core.records.exclusive._client", lambda emulator: made)
    return made
