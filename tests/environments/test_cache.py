import importlib.metadata
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import orbax_bench_core
from orbax_bench_core.environments.interpreter import cache_folder, only_process, source_folder

HOLDER = """
import os, sys
from pathlib import Path
from orbax_bench_core.environments.interpreter import only_process

lock = only_process(Path(sys.argv[1]), lambda: None)
lock.__enter__()
os._exit(1)
"""


def test_a_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("ORBAX_BENCH_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


def test_the_users_cache_is_the_default(monkeypatch, tmp_path):
    monkeypatch.delenv("ORBAX_BENCH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "orbax-bench" / "environments"


def test_the_home_directory_holds_it_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv("ORBAX_BENCH_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "orbax-bench" / "environments"


def test_the_source_is_this_package_and_nothing_else(tmp_path):
    folder = source_folder(tmp_path)
    package = Path(orbax_bench_core.__file__).parent
    assert (folder / "orbax_bench_core").resolve() == package.resolve()
    others = {path.suffix for path in folder.iterdir() if path.name != "orbax_bench_core"}
    assert others <= {".dist-info"}


def test_the_source_says_its_version(tmp_path):
    found = importlib.metadata.distributions(path=[str(source_folder(tmp_path))])
    names = {one.metadata["Name"]: one.version for one in found}
    assert names == {"orbax-bench": importlib.metadata.version("orbax-bench")}


def test_the_source_is_made_once(tmp_path):
    before = source_folder(tmp_path)
    link = os.lstat(before / "orbax_bench_core").st_ino
    assert source_folder(tmp_path) == before
    assert os.lstat(before / "orbax_bench_core").st_ino == link


def test_one_at_a_time(tmp_path):
    waiting, order = threading.Event(), []

    def second():
        with only_process(tmp_path / "e", waiting.set):
            order.append("second")

    with only_process(tmp_path / "e", lambda: order.append("waited")):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]


@pytest.mark.slow
def test_a_lock_ends_with_its_process(tmp_path):
    subprocess.run(
        [sys.executable, "-c", HOLDER, str(tmp_path / "e")], check=False, capture_output=True
    )
    told = []
    with only_process(tmp_path / "e", lambda: told.append("waiting")):
        assert told == []
