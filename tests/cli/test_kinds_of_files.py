"""What stands in the place of a file and is none, or nested beyond reason: one short message."""

import os
import shutil

import pytest

from tests.golden import made
from tests.golden.support import orbax_bench
from tests.support.paired_runs import make_paired_run  # noqa: F401

SUITE = "suite_name: s\nbenchmarks: [{generator: save_restore, options: {}}]\n"
READERS = (
    ("expand", "{file}"),
    ("run", "{file}", "-o", "out"),
    ("ab", "{file}", "-o", "out"),
    ("run", "s.yaml", "-o", "out", "--notify", "@{file}"),
    ("plan", "{file}", "--mesh", "x=4"),
    ("goodput", "--from-log", "{file}"),
    ("migrate", "{file}"),
    ("sharding", "{file}"),
    ("compare", "{file}", "{file}"),
    ("lineage", "{file}"),
    ("baseline", "show", "{file}"),
    ("step", "enforce-verdict", "PASS", "--verdicts", "{file}"),
    ("step", "enforce-verdict", "--lacking", "{file}"),
)


def pipe(path):
    os.mkfifo(path)


def loop(path):
    path.symlink_to(path)


def device(path):
    path.symlink_to("/dev/zero")


def deep(path):
    path.write_text("[" * 100_000)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("a place")


def check(outcome):
    assert outcome.code == 2, outcome
    assert 0 < len(outcome.err) < 2_100
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("kind", [pipe, loop, device, deep], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_what_is_no_file_is_not_waited_for(tmp_path, monkeypatch, words, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SUITE)
    kind(tmp_path / "file")
    outcome = orbax_bench(*(word.format(file=tmp_path / "file") for word in words))
    check(outcome)
    if "sharding" not in words and "@" not in " ".join(words):
        assert "file" in outcome.err


@pytest.fixture(scope="module")
def plain(place):
    made.plain_run(place / "plain")
    return place / "plain"


@pytest.fixture
def run(plain, tmp_path):
    """A copy of the plain run, to be damaged."""
    return shutil.copytree(plain, tmp_path / "plain", copy_function=os.link)


@pytest.mark.parametrize("text", ["{}", "[" * 100_000, "null"], ids=["empty", "deep", "null"])
def test_a_file_beside_the_records_that_is_damaged_is_named(run, text):
    (run / "soak.json").write_text(text)
    outcome = orbax_bench("report", run)
    check(outcome)
    assert f"{run / 'soak.json'}: damaged: " in outcome.err


@pytest.mark.parametrize("kind", [pipe, deep], ids=lambda kind: kind.__name__)
def test_limits_that_are_damaged_are_named_in_a_report(run, kind):
    kind(run / "limits.json")
    outcome = orbax_bench("report", run)
    assert outcome.code in (0, 1)
    for said in (" ".join(outcome.out.split()), (run / "report.md").read_text()):
        assert "Nothing is said of limits: " in said
    assert "limits.json" in (run / "report.html").read_text()


@pytest.mark.parametrize("kind", [pipe, loop, device], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("command", ["report", "lineage", "best"])
def test_a_record_that_is_no_file_is_named(run, command, kind):
    record = next(iter(sorted(run.glob("records/*/repeat_0/host_0.json"))))
    record.unlink()
    kind(record)
    outcome = orbax_bench(command, run)
    check(outcome)
    assert str(record) in outcome.err


@pytest.mark.parametrize(
    "words",
    [
        ("init", "--synthetic", "--force", "-o", "{file}"),
        ("step", "calibrate", "{runs}", "--passport", "{file}", "--report", "report.md"),
        ("step", "calibrate", "{runs}", "--passport", "passport.json", "--report", "{file}"),
    ],
    ids=" ".join,
)
def test_a_pipe_in_the_place_of_what_is_written_is_not_waited_for(
    make_paired_run, tmp_path, monkeypatch, words
):
    monkeypatch.chdir(tmp_path)
    pipe(tmp_path / "file")
    runs = make_paired_run(0).root
    outcome = orbax_bench(*(word.format(file=tmp_path / "file", runs=runs) for word in words))
    check(outcome)
    assert f"{tmp_path / 'file'}: A device, pipe or socket" in outcome.err
