"""Leases: one command measures a run or a point at a time, and writes its records."""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest
from etils import epath

from orbax_bench_core import leases
from orbax_bench_core.errors import UserError
from orbax_bench_core.leases import PACE, LeaseLost, turn
from orbax_bench_core.records import AlreadyRecorded, RunDirectory, check_versions


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    """Has holders beat often, and stay what they are however busy this machine is."""
    monkeypatch.setattr(PACE, "beat_s", 0.01)
    monkeypatch.setattr(PACE, "poll_s", 0.01)


@pytest.fixture
def run(make_run, make_record):
    return make_run([make_record()])


def again(run):
    """Returns the run directory as another process has it."""
    return RunDirectory(str(run.root))


def own(run, point=None):
    return run.owned(None if point is None else [point], command="orbax-bench run", say=print)


def files(run):
    """Returns the leases that are there, without the file that a beat is writing."""
    return sorted(path.name for path in (run.root / "leases").glob("[!.]*"))


def edit(run, **fields):
    """Changes the one lease that is there, as if somebody else had taken it."""
    (path,) = (run.root / "leases").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def place(run, make_record):
    """Returns where the record of repeat 3 lies."""
    path = run.root / "records" / make_record().point_id / "repeat_3" / "host_0.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def left_behind(run, **fields):
    """Leaves a lease whose holder does not beat."""
    with own(run):
        pass
    edit(run, ended=False, **fields)


def test_a_second_command_is_refused_with_the_holders_name(run):
    with (
        own(run),
        pytest.raises(UserError, match="this run is being measured by process") as caught,
        own(again(run)),
    ):
        pass
    said = str(caught.value)
    assert f"process {os.getpid()} on " in said
    assert "(orbax-bench run), since 20" in said
    assert " UTC; wait for its end" in said


def test_a_run_is_free_once_it_was_given_back_even_after_an_error(run):
    with pytest.raises(ZeroDivisionError), own(run):
        raise ZeroDivisionError
    for _ in range(2):
        with own(again(run)):
            pass
    assert files(run) == ["run.3.json"]


def test_two_points_are_measured_side_by_side(run, make_point):
    one, other = make_point(), make_point(options={"use_ocdbt": False}, label="other")
    with own(run, one), own(again(run), other):
        pass


def test_one_point_is_measured_once_at_a_time(run, make_point):
    with (
        own(run, make_point()),
        pytest.raises(UserError, match=r"point [0-9a-f]+ of this run"),
        own(again(run), make_point()),
    ):
        pass


@pytest.mark.parametrize("whole_first", [True, False])
def test_a_whole_run_and_a_step_exclude_each_other(run, make_point, whole_first):
    first, second = (None, make_point()) if whole_first else (make_point(), None)
    with own(run, first):
        with pytest.raises(UserError, match="being measured"), own(again(run), second):
            pass
        # Who was refused leaves nothing behind that would be in the way.
        other = make_point(options={"use_ocdbt": False}, label="other")
        if not whole_first:
            with own(again(run), other):
                pass


def test_a_holder_whose_counter_stands_still_is_replaced(run, monkeypatch):
    monkeypatch.setattr(PACE, "stale_s", 0.1)
    left_behind(run, machine="another", host="elsewhere")
    with own(run):
        assert files(run) == ["run.2.json"]


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "another of the same id"])
def test_a_holder_of_this_machine_that_is_gone_is_replaced_at_once(run, gone):
    ended = subprocess.Popen(["true"])
    ended.wait()
    left_behind(run, **({"pid": ended.pid} if gone else {"started": "1"}))
    with own(run):
        pass


def test_a_torn_lease_is_waited_for_like_any_other(run, monkeypatch):
    monkeypatch.setattr(PACE, "stale_s", 0.1)
    with own(run):
        pass
    (path,) = (run.root / "leases").iterdir()
    path.write_text("{")
    with own(run):
        assert files(run) == ["run.2.json"]


def test_a_lease_larger_than_any_is_one_message(run):
    with own(run):
        pass
    (path,) = (run.root / "leases").iterdir()
    with Path(path).open("wb") as file:
        file.truncate(2**30)
    refused = pytest.raises(UserError, match="Larger than")
    with refused, run.owned(None, command="two", say=print):
        pass


def test_of_many_newcomers_one_takes_a_stale_lease(run, monkeypatch):
    monkeypatch.setattr(PACE, "stale_s", 2.0)
    left_behind(run, machine="another")
    begin, end, outcomes = threading.Barrier(4), threading.Event(), []

    def come():
        mine = again(run)
        begin.wait()
        try:
            with own(mine):
                outcomes.append("held")
                end.wait(60)
        except UserError:
            outcomes.append("refused")
            if outcomes.count("refused") == 3:
                end.set()

    threads = [threading.Thread(target=come) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["held", "refused", "refused", "refused"]


def test_what_was_taken_over_can_no_longer_be_written(run, make_record):
    with own(run):
        fence = str(run.fence)
        newer = json.dumps({**json.loads((run.root / "leases" / "run.1.json").read_text())})
        (run.root / "leases" / "run.2.json").write_text(newer.replace(run.fence.token, "other"))
        for given in ("", fence):
            with pytest.raises(LeaseLost, match="is measured by process"):
                run.write_record(make_record(repeat=7), fence=given)
    with pytest.raises(LeaseLost):
        again(run).write_record(make_record(repeat=7), fence=fence)


def test_what_has_ended_can_no_longer_be_written(run, make_record):
    with own(run):
        fence = str(run.fence)
        run.write_record(make_record(repeat=7), fence=fence)
    with pytest.raises(LeaseLost):
        run.write_record(make_record(repeat=8), fence=fence)


@pytest.mark.parametrize("status", ["passed", "skipped"])
def test_a_finished_record_is_final(run, make_record, status):
    first = make_record(repeat=3, status=status)
    run.write_record(first)
    for later in ("failed", "passed"):
        with pytest.raises(AlreadyRecorded, match="is final"):
            run.write_record(make_record(repeat=3, status=later, duration_s=9.0))
    assert run.read_record(first.point, 3) == first


def test_a_failed_or_torn_record_is_replaced(run, make_record):
    run.write_record(make_record(repeat=3, status="failed"))
    path = place(run, make_record)
    run.write_record(make_record(repeat=3, status="failed", duration_s=2.0))
    path.write_text("{")
    run.write_record(make_record(repeat=3))
    assert run.read_record(make_record().point, 3) == make_record(repeat=3)


def test_what_is_torn_is_kept_aside_and_named(run, make_record):
    path = place(run, make_record)
    path.write_text('{"schema_version": 4, "status": "pas')
    said = []
    check_versions(run, [make_record().point], say=said.append)
    run.write_record(make_record(repeat=3))
    (aside,) = path.parent.glob(".*")
    assert aside.read_text() == '{"schema_version": 4, "status": "pas'
    assert said == [
        f"{path} is torn: its repeat is measured again, and the file kept beside it as {aside.name}"
    ]


def test_what_is_not_of_its_place_is_replaced_by_the_holder_alone_and_kept_aside(run, make_record):
    path = place(run, make_record)
    copy = make_record(repeat=2).model_dump_json().encode()
    path.write_bytes(copy)
    assert run.read_record(make_record().point, 3) is None
    with pytest.raises(AlreadyRecorded, match="the record of repeat 2 in a place of repeat 3"):
        run.write_record(make_record(repeat=3))
    with own(run):
        run.write_record(make_record(repeat=3))
    assert run.read_record(make_record().point, 3) == make_record(repeat=3)
    (aside,) = path.parent.glob(".*")
    assert aside.read_bytes() == copy
    assert run.strays == ()


def test_a_record_of_a_newer_release_is_never_replaced(run, make_record):
    path = place(run, make_record)
    path.write_text('{"schema_version": 6, "status": "failed"}')
    with own(run), pytest.raises(AlreadyRecorded, match=r"a newer orbax-bench \(schema 6"):
        run.write_record(make_record(repeat=3))


def test_a_record_of_a_repeat_that_did_not_pass_everywhere_is_replaced_by_its_seal(
    run, make_record
):
    first = make_record(repeat=3, num_hosts=2)
    run.write_record(first)
    seal = run.seal(first.point, 3)
    run.write_record(make_record(repeat=3, num_hosts=2, duration_s=2.0), replaces=seal)
    with pytest.raises(AlreadyRecorded):  # the seal is that of the record before
        run.write_record(make_record(repeat=3, num_hosts=2, duration_s=3.0), replaces=seal)


def test_file_systems_without_links_or_locks_will_do(run, make_record, monkeypatch):
    def refuse(*arguments):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr("fcntl.flock", refuse)
    test_a_finished_record_is_final(run, make_record, "passed")
    with own(run):
        assert files(run) == ["run.1.json"]


def test_a_batch_is_refused_beside_what_shares_a_point_with_it(run, make_point):
    first, second, third = (make_point(options={"n": number}) for number in range(3))

    def batch(directory, *points):
        return directory.owned(points, command="step", say=print)

    with batch(run, first, second):
        with (
            pytest.raises(UserError, match=r"batch-[0-9a-f]{12} of this run"),
            batch(again(run), second, third),
        ):
            pass
        with pytest.raises(UserError, match="batch-"), own(again(run), second):
            pass
        with pytest.raises(UserError, match="is being measured"), own(again(run)):
            pass
        with own(again(run), third):
            pass
    with own(run, second):
        with (
            pytest.raises(UserError, match=f"point {second.id} of this run"),
            batch(again(run), first, second),
        ):
            pass
        with batch(again(run), first, third):
            pass


def test_leases_of_machines_that_are_not_there_any_more_go_after_a_week(tmp_path):
    root = epath.Path(tmp_path)
    for machine in ("before", "lately", "here"):
        with turn(root, machine, command="orbax-bench run", say=print):
            pass
    for machine in ("before", "here"):
        os.utime(tmp_path / "leases" / f"{machine}.1.json", (0, 0))
    with turn(root, "here", command="orbax-bench run", say=print):
        left = {path.name for path in (tmp_path / "leases").glob("[!.]*")}
    assert left == {"lately.1.json", "here.2.json"}


def test_a_newcomer_that_stood_still_takes_no_number_that_others_have_passed(tmp_path, monkeypatch):
    def taken():
        return turn(epath.Path(tmp_path), "machine", command="orbax-bench run", say=print)

    create = leases.files.create_exclusively
    ended, told = threading.Event(), threading.Event()
    others = []

    def others_first(path, data):
        """Lets one other command have its turn, and a second one begin its own, meanwhile."""
        monkeypatch.setattr(leases.files, "create_exclusively", create)
        with taken():
            pass
        others.append(taken())
        others[0].__enter__()
        threading.Timer(0.2, lambda: (ended.set(), others[0].__exit__(None, None, None))).start()
        told.set()
        return create(path, data)

    with taken():
        pass
    monkeypatch.setattr(leases.files, "create_exclusively", others_first)
    with taken():
        assert told.is_set()
        assert ended.is_set()
