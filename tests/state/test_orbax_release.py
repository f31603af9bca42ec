import importlib.metadata

import pytest

from orbax_bench_core.state import orbax_api


@pytest.fixture
def installed(monkeypatch):
    return lambda version: monkeypatch.setattr(orbax_api, "_installed", lambda: version)


@pytest.mark.parametrize("version", ["0.11.12", "0.11.12.dev3", "0.11.12rc1", "0.11.100", "1.0"])
def test_this_release_or_a_later_one(installed, version):
    installed(version)
    assert orbax_api.is_at_least("0.11.12")


@pytest.mark.parametrize("version", ["0.11.11", "0.9.20", "0.11"])
def test_an_earlier_one(installed, version):
    installed(version)
    assert not orbax_api.is_at_least("0.11.12")


def test_what_is_installed_here_is_asked():
    assert orbax_api.is_at_least(importlib.metadata.version("orbax-checkpoint"))
    assert not orbax_api.is_at_least("1000")


def test_what_is_lacking_is_said(installed):
    installed("0.11.12")
    assert orbax_api.lacks("a: 1", "0.12.0") == (
        "a: 1 needs orbax-checkpoint >= 0.12.0; this environment has 0.11.12"
    )
