import pytest
from packaging.version import Version

from orbax_bench_core.environments import check_release, releases
from orbax_bench_core.errors import UserError

pytestmark = pytest.mark.slow  # each asks the index


def test_releases_between_two():
    found = releases("orbax-checkpoint", since="0.11.38", until="0.12.1")
    assert found == [Version(one) for one in ("0.11.38", "0.11.39", "0.11.40", "0.12.0", "0.12.1")]


def test_a_version_that_nobody_can_install_is_left_out():
    assert Version("0.11.29") not in releases("orbax-checkpoint", since="0.11.28", until="0.11.30")


def test_wheels_of_ones_own_are_found_and_pre_releases_left_out(tmp_path):
    for version in ("0.11.30.7", "0.11.31rc1"):
        (tmp_path / f"orbax_checkpoint-{version}-py3-none-any.whl").write_bytes(b"")
    found = releases("orbax-checkpoint", extra_wheels=tmp_path, since="0.11.30", until="0.11.31")
    assert found == [Version(one) for one in ("0.11.30", "0.11.30.7", "0.11.31")]


def test_what_does_not_exist_is_said_with_the_newest():
    with pytest.raises(UserError, match=r"has no release from 77 that can be installed here; the "):
        releases("orbax-checkpoint", since="77")
    with pytest.raises(UserError, match=r"no release from 77 to 78 that can be installed here; "):
        releases("orbax-checkpoint", since="77", until="78")


@pytest.mark.parametrize("package", ["", "a b", "-x", "\udcff"])
def test_what_is_no_name_of_a_package_is_refused(package):
    with pytest.raises(UserError, match="is no name of a package, such as orbax-checkpoint"):
        releases(package)


def test_a_release_that_is_not_there_is_told_from_an_index_that_is_not(monkeypatch):
    check_release("orbax-checkpoint", "0.11.30")
    with pytest.raises(UserError, match=r"no release 77 that can be installed here; the newest is"):
        check_release("orbax-checkpoint", "77")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    with pytest.raises(UserError, match=r"^cannot ask the package index for orbax-checkpoint: uv:"):
        check_release("orbax-checkpoint", "0.11.30")
