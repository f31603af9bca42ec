"""Pathways, by the interfaces of its client library and of Orbax: its backend is not here."""

import importlib
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from orbax.checkpoint import pathways as orbax_pathways
from orbax.checkpoint.experimental.v1._src.context import context as orbax_context

from orbax_bench_core.state import many_hosts
from orbax_bench_core.state.tree import StateError
from orbax_bench_core.worker import WorkerSetup

CLIENT = """
from pathlib import Path
def is_pathways_backend_used(): return True
def initialize():
    import jax
    jax.config.update("jax_platforms", "cpu")  # stands for the devices of Pathways
    Path({mark!r}).write_text("initialized")
"""


class _Client(types.ModuleType):
    """Stands for `pathwaysutils`: the two functions that its release 0.1 has."""

    def __init__(self, used: bool | None) -> None:
        super().__init__("pathwaysutils")
        self.initialized = 0
        self._used = used

    def is_pathways_backend_used(self) -> bool | None:
        return self._used

    def initialize(self) -> None:
        self.initialized += 1


@pytest.mark.parametrize("used", [True, False, None])
def test_pathways_is_joined_when_it_is_used(
    monkeypatch: pytest.MonkeyPatch, used: bool | None
) -> None:
    client = _Client(used)
    monkeypatch.setitem(sys.modules, "pathwaysutils", client)
    monkeypatch.setattr(many_hosts, "jax", types.SimpleNamespace(config=_Platforms("proxy")))
    assert many_hosts.initialize_if_used() is bool(used)
    assert client.initialized == int(bool(used))


def test_a_client_that_nobody_asked_for_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", lambda name: pytest.fail(f"imports {name}"))
    assert many_hosts.initialize_if_used() is False


def test_without_the_client_library_there_is_no_pathways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pathwaysutils", None)
    assert many_hosts.initialize_if_used() is False


def test_pathways_that_is_asked_for_and_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pathwaysutils", None)
    monkeypatch.setattr(many_hosts, "jax", types.SimpleNamespace(config=_Platforms("proxy,cpu")))
    with pytest.raises(StateError, match=r"'proxy,cpu', which is Pathways.*orbax-bench\[pathways]"):
        many_hosts.initialize_if_used()


class _Platforms:
    def __init__(self, jax_platforms: str) -> None:
        self.jax_platforms = jax_platforms


def _implementation_in(context: Any) -> Any:
    with context:
        return orbax_context.get_context().pathways_options.checkpointing_impl


def test_on_pathways_a_load_is_made_by_colocated_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_hosts, "is_used", lambda: True)
    context = many_hosts.loading_context(colocated_python=True)
    expected = orbax_pathways.CheckpointingImpl.COLOCATED_PYTHON
    assert _implementation_in(context) == expected


@pytest.mark.slow
def test_a_worker_joins_pathways_before_anything_else(tmp_path: Path) -> None:
    (tmp_path / "client").mkdir()
    mark = tmp_path / "mark"
    (tmp_path / "client" / "pathwaysutils.py").write_text(CLIENT.format(mark=str(mark)))
    # Nobody listens at this address: a worker that joined jax.distributed would fail.
    setup = WorkerSetup(
        root=str(tmp_path / "run"),
        x64=True,
        num_devices=1,
        num_processes=2,
        coordinator="127.0.0.1:1",
    )
    path = os.pathsep.join([str(tmp_path / "client"), str(Path(__file__).parents[2])])
    subprocess.run(
        [sys.executable, "-m", "orbax_bench_core.worker", "--setup", setup.model_dump_json()],
        stdin=subprocess.DEVNULL,
        check=True,
        env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "proxy"},
        timeout=120,
    )
    assert mark.read_text() == "initialized"
