"""Places on storage: paths as somebody named them, and credentials for those in Cloud Storage."""

import contextlib
import http.server
import os
import socket
import threading
import time
from pathlib import Path

import pytest
from etils import epath

from orbax_bench_core.files import check_credentials, checked_path, credentials, place, read_at_most


@pytest.mark.parametrize("scheme", ["ftp", "s3", "hdfs", "http"])
def test_what_cannot_be_read_and_written_is_refused_by_its_scheme(scheme):
    uri = f"{scheme}://host/x"
    with pytest.raises(OSError, match=f"local paths and gs:// only .*{uri}"):
        place(uri)
    with pytest.raises(OSError, match="local paths and gs:// only"):
        read_at_most(uri)
    with pytest.raises(ValueError, match=f"would put {scheme}:// data into a local folder"):
        checked_path(uri)


def test_a_file_uri_is_a_local_path(tmp_path):
    (tmp_path / "a").write_bytes(b"whole")
    assert place(f"file://{tmp_path}/a") == epath.Path(tmp_path / "a")
    assert read_at_most(f"file://{tmp_path}/a") == b"whole"


def test_a_path_that_is_no_text_is_refused():
    with pytest.raises(ValueError, match=r"cannot use .*caf.udce9.*: its bytes are no UTF-8"):
        checked_path(os.fsdecode(b"caf\xe9"))


@pytest.mark.parametrize("named", ["gs:/bucket/x", "gs:bucket/x", "file:/x"])
def test_an_address_that_lacks_a_slash_is_no_folder_of_that_name(named):
    scheme = named.partition(":")[0]
    with pytest.raises(ValueError, match=f"an address begins with {scheme}://, got '{named}'"):
        checked_path(named)
    assert checked_path(f"./{named}").endswith(f"/{named}")


@pytest.mark.parametrize(
    ("given", "checked"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("gs://bucket/a/", "gs://bucket/a"),
        ("~/a", str(Path.home() / "a")),
    ],
)
def test_a_path_is_given_in_full(given, checked):
    assert checked_path(given) == checked


SAID = (
    r"No credentials for Cloud Storage: run `gcloud auth application-default login`, or .* "
    "GOOGLE_APPLICATION_CREDENTIALS; .* STORAGE_EMULATOR_HOST"
)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    """Has tests run on no machine of Google's."""
    monkeypatch.setattr(credentials, "_PRODUCT", credentials.Path("/nowhere"))


@contextlib.contextmanager
def metadata_server(flavor, after_s=0.0):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            time.sleep(after_s)
            self.send_response(200)
            self.send_header("Metadata-Flavor", flavor)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(credentials, "_WITHIN_S", 0.5)


@pytest.fixture
def nobody(tmp_path):
    """Environment of a user who has none, beside a metadata server that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield {
            "CLOUDSDK_CONFIG": str(tmp_path),
            "GCE_METADATA_IP": f"127.0.0.1:{silent.getsockname()[1]}",
        }


@pytest.mark.slow
def test_where_there_are_none_one_message_says_so_in_time(nobody):
    begun = time.monotonic()
    with pytest.raises(PermissionError, match=SAID) as caught:
        check_credentials("gs://bucket/x", nobody)
    assert time.monotonic() - begun < 60
    assert caught.value.filename == "gs://bucket/x"


def test_a_key_file_that_is_not_there_is_named(nobody, tmp_path):
    nobody["GOOGLE_APPLICATION_CREDENTIALS"] = str(tmp_path / "key.json")
    with pytest.raises(PermissionError, match=r"names .*key\.json, where no file is"):
        check_credentials("gs://bucket/x", nobody)


@pytest.mark.parametrize(
    "given",
    [
        {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:1"},
        {"FSSPEC_GCS_TOKEN": "anon"},
        {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
        {"GCE_METADATA_HOST": "metadata.google.internal"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_who_is_told_otherwise_asks_nobody(nobody, monkeypatch, given):
    monkeypatch.setattr(socket.socket, "connect", None)
    check_credentials("gs://bucket/x", {**nobody, **given})


def test_credentials_of_gcloud_and_of_a_key_file_do(nobody, tmp_path):
    (tmp_path / "application_default_credentials.json").write_text("{}")
    check_credentials("gs://bucket/x", nobody)
    (tmp_path / "key.json").write_text("{}")
    nobody["CLOUDSDK_CONFIG"] = "/nowhere"
    nobody["GOOGLE_APPLICATION_CREDENTIALS"] = str(tmp_path / "key.json")
    check_credentials("gs://bucket/x", nobody)


def test_a_machine_of_google_is_left_to_its_slow_metadata_server(nobody, tmp_path, monkeypatch):
    (tmp_path / "product_name").write_text("Google Compute Engine\n")
    monkeypatch.setattr(credentials, "_PRODUCT", tmp_path / "product_name")
    check_credentials("gs://bucket/x", nobody)


@pytest.mark.parametrize(("flavor", "fine"), [("Google", True), ("other", False)])
def test_a_metadata_server_may_think(quick, nobody, flavor, fine):
    with metadata_server(flavor, after_s=0.2) as address:
        nobody["GCE_METADATA_IP"] = address
        refused = pytest.raises(PermissionError, match=SAID)
        with contextlib.nullcontext() if fine else refused:
            check_credentials("gs://bucket/x", nobody)


def test_a_file_in_a_bucket_is_not_looked_for_without(quick, nobody, monkeypatch):
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in nobody.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PermissionError, match=SAID):
        read_at_most("gs://bucket-that-nothing-else-here-asks-for/x")
