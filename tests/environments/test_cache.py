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


@pytest.mark.parametrize(
    ("variable", "below"),
    [
        ("ORBAX_BENCH_CACHE", ""),
        ("XDG_CACHE_HOME", "orbax-bench/environments"),
        ("HOME", ".cache/orbax-bench/environments"),
    ],
)
def test_the_cache_is_where_it_was_chosen_or_that_of_the_user(
    monkeypatch, tmp_path, variable, below
):
    for name in ("ORBAX_BENCH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    assert cache_folder() == tmp_path / below


def test_the_source_is_this_package_with_its_version_and_made_once(tmp_path):
    folder = source_folder(tmp_path)
    package = Path(orbax_bench_core.__file__).parent
    assert (folder / "orbax_bench_core").resolve() == package.resolve()
    others = {path.suffix for path in folder.iterdir() if path.name != "orbax_bench_core"}
    assert others <= {".dist-info"}
    found = importlib.metadata.distributions(path=[str(folder)])
    names = {one.metadata["Name"]: one.version for one in found}
    assert names == {"orbax-bench": importlib.metadata.version("orbax-bench")}
    link = os.lstat(folder / "orbax_bench_core").st_ino
    assert source_folder(tmp_path) == folder
    assert os.lstat(folder / "orbax_bench_core").st_ino == link


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
