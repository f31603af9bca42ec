import importlib.metadata

import pytest
from packaging.requirements import Requirement

from orbax_bench_core.environments import resolve


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a distribution onto the path of this process."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name, version):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        importlib.invalidate_caches()

    return install


def test_what_the_worker_needs_is_preferred_as_it_is_here_and_nothing_else():
    for needed in ("orbax-checkpoint", "jaxlib", "tensorstore", "ml-dtypes", "pydantic-core"):
        assert f"{needed}=={importlib.metadata.version(needed)}" in resolve.own_versions()
    assert not [one for one in resolve.own_versions() if one.startswith(("pytest==", "rich=="))]


@pytest.mark.parametrize(
    ("plugin", "extra"),
    [("jax-cuda13-plugin", "cuda13"), ("jax-cuda12-plugin", "cuda12"), ("libtpu", "tpu")],
)
def test_jax_gets_the_accelerator_that_it_has_here(install, plugin, extra):
    install(plugin, "1.0")
    (jax,) = (Requirement(one) for one in resolve.worker_requirements() if one.startswith("jax"))
    assert extra in jax.extras  # those of the machine of the tests stand beside it


def test_without_an_accelerator_jax_is_plain(monkeypatch):
    monkeypatch.setattr(resolve, "_ACCELERATORS", {"no-such-distribution": "none"})
    assert "jax" in resolve.worker_requirements()
