"""Keeping passports, and finding the user's own."""

import pytest

from orbax_bench_core.analysis.noise import find, load, save
from orbax_bench_core.analysis.noise.measure import from_records
from orbax_bench_core.analysis.noise.passport import default_path
from orbax_bench_core.errors import UserError


@pytest.fixture
def passport(noisy_records):
    """A passport with one entry."""
    return from_records(noisy_records(0.1, n=40))


def test_what_is_saved_is_loaded(passport, tmp_path):
    save(passport, str(tmp_path / "new" / "passport.json"))
    assert load(str(tmp_path / "new" / "passport.json")) == passport


def test_the_users_own_is_found_where_it_exists(passport, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find(None) is None
    save(passport, str(default_path()))
    assert find(None) == passport


def test_the_one_that_is_named_must_exist(tmp_path):
    with pytest.raises(UserError, match="write one with `orbax-bench calibrate DIR --save "):
        find(str(tmp_path / "none.json"))


def test_a_file_of_another_kind_is_told_without_a_key(tmp_path):
    (tmp_path / "suite.yaml").write_text("suite_name: s")
    with pytest.raises(UserError, match="not a noise passport of schema version 1: Invalid JSON"):
        load(str(tmp_path / "suite.yaml"))


def test_another_file_is_refused(tmp_path):
    (tmp_path / "other.json").write_text('{"schema_version": 2}')
    with pytest.raises(UserError, match="not a noise passport of schema version 1"):
        load(str(tmp_path / "other.json"))
