"""Code under test: revisions of benchmark classes and suite files, from git."""

import os

import pytest

from orbax_bench_core.provenance import code as module
from orbax_bench_core.provenance import code_under_test
from tests.support.repositories import git, repository  # noqa: F401 - fixtures


def source(repository, name="benches/mine.py"):
    found = code_under_test({"m.C": str(repository / name)}, "")
    return found.generators["m.C"]


def test_a_committed_file_has_commit_branch_and_path(git, repository):
    found = source(repository)
    assert found.commit == found.revision == git("rev-parse", "HEAD")
    assert (found.dirty, found.changes, found.branch) == (False, "", "trunk")
    assert found.path == "benches/mine.py"


def test_what_git_cannot_tell_is_unknown(repository):
    (repository / ".git" / "index").write_bytes(b"broken")
    found = source(repository)
    assert (found.known, found.dirty) == (False, "unknown")
    assert "index" in found.reason


def test_two_dirty_states_differ_in_name(repository):
    (repository / "suite.yaml").write_text("a: 2\n")
    one = source(repository)
    (repository / "suite.yaml").write_text("a: 3\n")
    other = source(repository)
    assert one.dirty is other.dirty is True
    assert one.revision.startswith(f"{one.commit}-dirty.")
    assert one.revision != other.revision


def test_new_python_counts_and_results_do_not(repository):
    (repository / "results").mkdir()
    (repository / "results" / "run.json").write_text("{}")
    assert source(repository).dirty is False
    (repository / "benches" / "helper.py").write_text("x = 1\n")
    assert source(repository).dirty is True


def test_a_file_that_was_never_added_is_a_change(repository):
    (repository / "other.yaml").write_text("a: 1\n")
    found = source(repository, "other.yaml")
    assert (found.known, found.dirty) == (True, True)
    assert source(repository).dirty is False


def test_what_the_repository_ignores_is_not_its_code(repository):
    (repository / "environment").mkdir()
    (repository / "environment" / "x.py").write_text("")
    found = source(repository, "environment/x.py")
    assert not found.known
    assert "ignores the file" in found.reason


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://user:secret@host.org/a/b.git", "https://host.org/a/b.git"),
        ("https://token@host.org/a/b.git?key=1", "https://host.org/a/b.git"),
        ("git@host.org:a/b.git", "host.org:a/b.git"),
        ("ssh://git@host.org/a/b.git", "ssh://host.org/a/b.git"),
        ("/srv/git/b.git", "/srv/git/b.git"),
    ],
)
def test_a_remote_has_no_credentials(git, repository, url, kept):
    git("remote", "add", "origin", url)
    assert source(repository).remote == kept


def test_a_file_outside_of_any_repository_is_unknown_with_its_reason(tmp_path):
    (tmp_path / "mine.py").write_text("")
    found = source(tmp_path, "mine.py")
    assert (found.commit, found.dirty, found.revision) == ("unknown",) * 3
    assert "not a git repository" in found.reason
    assert len(found.content) == 64


def test_a_repository_without_a_commit_is_unknown(git, tmp_path):
    (tmp_path / "repository" / "mine.py").write_text("")
    assert source(tmp_path / "repository", "mine.py").revision == "unknown"


@pytest.mark.skipif(os.getuid() != 0, reason="needs to give a folder to somebody else")
def test_a_repository_of_somebody_else_is_unknown_with_gits_reason(repository, monkeypatch):
    for name in ("SUDO_UID", "GIT_TEST_ASSUME_DIFFERENT_OWNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for path in (repository, repository / ".git"):
        os.chown(path, 12345, 12345)
    found = source(repository)
    assert not found.known
    assert "dubious ownership" in found.reason


def test_the_class_of_an_installed_package_has_its_version():
    found = source_of_module("pytest")
    assert (found.package, found.commit) == ("pytest", "unknown")
    assert found.words == f"pytest {found.version}"


def source_of_module(name):
    import importlib

    file = importlib.import_module(name).__file__
    return code_under_test({"m.C": file}, "").generators["m.C"]


def test_the_code_under_test_of_a_class_is_its_file(make_record, make_point):
    point = make_point(benchmark="mine.Mine")
    code = {"generator": {"commit": "a1"}, "suite": {"commit": "b2"}}
    assert make_record(point, provenance={"code": code}).code.commit == "a1"


def test_a_class_that_was_edited_since_the_run_began_is_found_anew(repository, git):
    file = str(repository / "benches" / "mine.py")
    noted = {"generator": source(repository).model_dump(mode="json"), "suite": {}}
    assert module.loaded_code(noted, file) is noted
    module._loaded.cache_clear()
    (repository / "benches" / "mine.py").write_text("value = 2\n")
    again = module.loaded_code(noted, file)
    assert again["generator"]["dirty"] is True
