"""Code under test of a session: that of now, beside what the run began with."""

import json

import pytest

from orbax_bench_core.config import load_suite
from orbax_bench_core.execute import Session
from orbax_bench_core.records import RunDirectory
from tests.support.repositories import git, repository  # noqa: F401 - fixtures

SUITE = "suite_name: s\nbenchmarks:\n- {generator: save_restore, options: {}}\n"


@pytest.fixture
def begin(git, repository, tmp_path):
    """Commits the suite with a comment, and begins its run or goes on with it."""

    def make(comment):
        file = repository / "suite.yaml"
        file.write_text(f"{SUITE}# {comment}\n")
        git("commit", "-qam", comment)
        session = Session.begin(load_suite(str(file)), str(tmp_path / "run"))
        return session, git("rev-parse", "HEAD")

    return make


def test_a_run_notes_the_revision_of_its_suite(begin, tmp_path):
    session, commit = begin("one")
    info = RunDirectory(str(tmp_path / "run")).read_info()
    assert info.code == session.code
    assert (info.code.suite.commit, info.code.suite.dirty) == (commit, False)
    [generator] = info.code.generators.values()
    assert generator.file.endswith("benchmarks/save_restore.py")


def test_what_goes_on_at_another_revision_measures_that_one(begin):
    _, first = begin("one")
    session, second = begin("two")
    assert session.info.code.suite.commit == first
    assert session.code.suite.commit == second
    kept = session.code.of(session.plain[0])
    assert json.loads(json.dumps(kept))["suite"]["commit"] == second


def test_a_step_takes_what_the_run_noted(begin):
    session, commit = begin("one")
    rejoined = Session.rejoin(str(session.directory.root), session.entries[0].model_dump_json())
    assert rejoined.code.suite.commit == commit
