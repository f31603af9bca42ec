"""Sessions: a whole run, and one entry of it in another process."""

import os
import subprocess

import pytest

from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Event, LocalHost, RunSettings, Session, Watcher
from orbax_bench_core.execute.session import command_line
from orbax_bench_core.files import temporary_name

SUITE = """\
suite_name: small
benchmarks: [{generator: save_restore, options: {use_ocdbt: [true, false]}}]
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
"""
ARMS = "arms: {candidate: {options: {use_compression: false}}}\n"


@pytest.fixture
def begin(tmp_path):
    return lambda text=SUITE: Session.begin(parse_suite(text), str(tmp_path / "out"))


def test_a_session_removes_what_a_process_0_that_was_killed_has_left(begin):
    session = begin()
    left = session.directory.root / "cluster"
    left.mkdir()
    (left / "suite.zip").write_text("private")
    with session.owned():
        assert not left.exists()


@pytest.mark.parametrize("text", [SUITE, SUITE + ARMS], ids=["point", "pair"])
def test_a_step_rejoins_with_one_entry_of_the_run(begin, text):
    whole = begin(text)
    settings = RunSettings(devices=2)
    root, entry = str(whole.directory.root), whole.entries[1]
    session = Session.rejoin(root, entry.model_dump_json(), settings=settings)
    assert session.entries == (entry,)
    assert not session.whole
    assert (session.info, session.settings) == (whole.info, settings)
    assert session.suite.suite == whole.suite.suite


def test_a_step_cannot_rejoin_what_has_not_begun(begin, tmp_path):
    entry = begin().entries[0].model_dump_json()
    with pytest.raises(UserError, match=r"is not a run directory: it does not exist"):
        Session.rejoin(str(tmp_path / "elsewhere"), entry)


def test_a_session_is_silent_unless_it_is_told_otherwise(begin, capsys):
    session = begin()
    session.say("a line")
    with session.watch:
        session.watch(Event())
    assert type(session.watch) is Watcher
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_another_host_can_start_the_workers(orchestrate):
    class Elsewhere:
        def __init__(self):
            self.launched = []

        def make_environments(self, configs, **_):
            return {}

        def launch(self, setups, *, environment, python, logs, inbox):
            self.launched += zip([setup.root for setup in setups], logs, strict=True)
            local = LocalHost(module="tests.support.fake_worker")
            return local.launch(
                setups, environment=environment, python=python, logs=logs, inbox=inbox
            )

    assert RunSettings().host == LocalHost() == LocalHost(module="orbax_bench_core.worker")
    run, host = orchestrate("behave"), Elsewhere()
    run.run(host=host)
    assert host.launched == [(str(run.directory), run.directory / "logs" / "worker_1_devices.log")]
    assert run.record("behave").status == "passed"


@pytest.mark.parametrize("words", [["--notify", "https://h/S3CR3T"], ["--notify=https://h/S3CR3T"]])
def test_the_lease_that_others_read_has_no_address(monkeypatch, words):
    monkeypatch.setattr("sys.argv", ["/bin/orbax-bench", "ab", *words, "-o", "out"])
    said = command_line()
    assert "S3CR3T" not in said
    assert said.startswith("orbax-bench ab --notify")
    assert said.endswith("… -o out")


def test_the_lease_can_hold_a_path_that_is_no_text(begin, monkeypatch):
    monkeypatch.setattr("sys.argv", ["orbax-bench", "ab", "--local-directory", "\udcff"])
    with begin().owned():
        assert command_line() == "orbax-bench ab --local-directory \\udcff"


def test_what_a_worker_was_writing_when_it_was_ended_goes_with_the_session(begin):
    session = begin()
    folder = session.directory.root / "records" / session.entries[0].id / "repeat_0"
    folder.mkdir(parents=True)
    own = temporary_name("host_0.json")
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    left = folder / own.replace(f"-{os.getpid()}-", f"-{ended.pid}-")
    for path in (left, folder / own):
        path.write_text("half")
    with pytest.raises(KeyboardInterrupt), session.owned():
        raise KeyboardInterrupt
    assert [path.name for path in folder.iterdir()] == [own]
