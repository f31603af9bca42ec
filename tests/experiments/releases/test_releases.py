"""The releases between two, from an index and from a folder of wheels."""

import pytest
from packaging.version import Version

from orbax_bench_core.errors import UserError
from orbax_bench_core.experiments.releases.search import find_releases


@pytest.fixture
def wheels(tmp_path):
    """A folder of wheels, by name only."""
    for name in ("my_pkg-1.0", "my_pkg-1.1", "my_pkg-1.1+slow", "my_pkg-1.10", "other-1.2"):
        (tmp_path / f"{name}-py3-none-any.whl").touch()
    return tmp_path


def versions(found):
    return [release.version for release in found]


def test_versions_ascend_as_versions_do(wheels):
    found = find_releases("my-pkg", "1.0", "1.10", wheels=wheels, only_wheels=True)
    assert versions(found) == ["1.0", "1.1", "1.1+slow", "1.10"]


def test_only_what_lies_between_is_taken(wheels):
    found = find_releases("my-pkg", "1.1", "1.1+slow", wheels=wheels, only_wheels=True)
    assert versions(found) == ["1.1", "1.1+slow"]


def test_an_environment_has_the_wheel_and_what_goes_with_it(wheels):
    found = find_releases("my-pkg", "1.0", "1.1", wheels=wheels, also=["jax==1"], only_wheels=True)
    environment = found[0].environment
    assert environment.name == "my-pkg-1.0"
    assert environment.requirements == (
        str(wheels.resolve() / "my_pkg-1.0-py3-none-any.whl"),
        "jax==1",
    )


def test_the_index_has_the_rest(wheels, monkeypatch):
    import orbax_bench_core.environments as environments

    monkeypatch.setattr(
        environments, "releases", lambda package, **_: [Version("1.0"), Version("1.0.5")]
    )
    found = find_releases("my-pkg", "1.0", "1.1", wheels=wheels)
    assert [release.environment.requirements[0].rsplit("/")[-1] for release in found] == [
        "my_pkg-1.0-py3-none-any.whl",
        "my-pkg==1.0.5",
        "my_pkg-1.1-py3-none-any.whl",
    ]


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("1.0", "1.4", "no release 1.4; did you mean"),
        ("9.9", "1.0", "no release 9.9; "),
        ("1.1", "1.0", "must be older than the bad one"),
        ("1.0", "1.0", "must be older"),
    ],
)
def test_versions_that_make_no_range_are_refused(wheels, good, bad, message):
    with pytest.raises(UserError, match=message):
        find_releases("my-pkg", good, bad, wheels=wheels, only_wheels=True)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="names no folder"):
        find_releases("p", "1", "2", wheels=tmp_path / "none", only_wheels=True)
