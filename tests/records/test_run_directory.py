"""The run directory: who may write into it, and what is read back from it."""

import json
from pathlib import Path

import pytest

from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import Run, check_versions
from orbax_bench_core.records.errors import PEER_FAILED, ErrorInfo
from orbax_bench_core.records.run_directory import RunDirectory
from orbax_bench_core.sweep import Expansion, Pair, ProcessNoise, expand_here
from tests.support.repeats import repeat_over

ERROR = ErrorInfo(type="ValueError", message="no")


def suite(name="first", repeats=1):
    return parse_suite(
        f"suite_name: {name}\nnum_repeats: {repeats}\n"
        "benchmarks:\n- {generator: save_restore, options: {}}\n",
        "suite.yaml",
    )


def start(directory, loaded=None):
    loaded = loaded or suite()
    return RunDirectory(str(directory)).start(loaded, expand_here(loaded))


def test_a_run_says_what_it_runs(tmp_path):
    loaded = suite(repeats=3)
    info = start(tmp_path / "run", loaded)
    assert (info.suite_name, info.num_repeats, info.status) == ("first", 3, "running")
    assert (info.suite_text, info.suite_file) == (loaded.text, "suite.yaml")
    assert len(info.expansion.points) == 1
    assert RunDirectory(str(tmp_path / "run")).read_info() == info


def test_a_new_run_has_an_id_of_its_own(tmp_path):
    assert start(tmp_path / "a").run_id != start(tmp_path / "b").run_id


def test_more_repeats_of_the_same_suite_continue_the_run(tmp_path):
    earlier = start(tmp_path, suite(repeats=1))
    later = start(tmp_path, suite(repeats=5))
    assert (later.run_id, later.created_at) == (earlier.run_id, earlier.created_at)
    assert later.num_repeats == 5


def test_a_run_of_another_suite_is_refused_by_its_name_and_left_as_it_was(tmp_path):
    begun = start(tmp_path, suite("first")).created_at
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(UserError) as caught:
        start(tmp_path, suite("second"))
    assert str(caught.value) == (
        f"{tmp_path} holds a run of another suite ('first', begun {begun:%Y-%m-%d %H:%M} UTC); "
        "choose another output directory"
    )
    assert (tmp_path / "run.json").read_bytes() == before


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "run").write_text("I am a file")
    with pytest.raises(
        UserError,
        match=f"cannot write to {tmp_path}/run: .*; a file is in the place of a folder; move",
    ):
        start(tmp_path / "run")


def test_a_directory_that_orbax_would_misread_is_refused():
    with pytest.raises(UserError, match="would put s3:// data into a local folder"):
        RunDirectory("s3://bucket/run")


def test_a_way_up_and_down_again_is_left_out_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    assert str(RunDirectory("../x/../y").root) == str(tmp_path / "y")


def test_a_link_keeps_its_name(tmp_path):
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "deep")
    assert str(RunDirectory(f"{tmp_path}/link/r").root) == f"{tmp_path}/link/r"
    # What lies above the link's target is no neighbour of the link.
    assert str(RunDirectory(f"{tmp_path}/link/../r").root) == f"{tmp_path}/link/../r"


def test_an_address_in_a_bucket_is_as_it_was_given():
    assert str(RunDirectory("gs://bucket/x/../y").root) == "gs://bucket/x/../y"


def test_a_directory_without_a_run_says_so(tmp_path):
    run = RunDirectory(str(tmp_path))
    assert not run.exists()
    with pytest.raises(
        UserError, match=r"it has no run\.json; give one that `orbax-bench run` has made"
    ):
        run.read_info()
    with pytest.raises(UserError, match="is not a run directory: it does not exist; give one that"):
        RunDirectory(str(tmp_path / "nowhere")).read_info()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"schema_version": 6}, "written by a newer orbax-bench", id="version"),
        pytest.param(
            {"num_repeats": "x"},
            "not readable as schema version 5: num_repeats: Input should be a valid",
            id="damaged",
        ),
    ],
)
def test_a_run_of_another_layout_is_refused_by_file_and_key(tmp_path, change, message):
    start(tmp_path)
    file = tmp_path / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(UserError) as caught:
        RunDirectory(str(tmp_path)).read_info()
    (problem,) = caught.value.problems
    assert problem.file == str(file)
    assert problem.message.startswith(message)


def test_a_file_is_no_run_directory(tmp_path):
    (tmp_path / "suite.yaml").write_text("")
    with pytest.raises(UserError, match="is not a run directory: it is a file; give one that"):
        RunDirectory(str(tmp_path / "suite.yaml")).read_info()


def test_a_repeat_and_a_warm_up_of_one_number_are_two_records(make_run, make_record):
    warmup, repeat = make_record(warmup=True), make_record()
    run = make_run([warmup, repeat])
    assert run.read_record(repeat.point, 0) == repeat
    assert run.read_record(repeat.point, 0, warmup=True) == warmup


@pytest.fixture
def damaged(make_run, make_record, tmp_path):
    """A run of two repeats, of which the first cannot be read."""

    def build(damage):
        records = [make_record(repeat=0), make_record(repeat=1)]
        run = make_run(records, num_repeats=2)
        file = tmp_path / "run" / "records" / records[0].point_id / "repeat_0" / "host_0.json"
        text = file.read_text()
        file.write_text(damage(text))
        assert file.read_text() != text
        return run, records

    return build


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: "", id="empty"),
        pytest.param(lambda text: text[:-5], id="cut short"),
        pytest.param(lambda text: text.replace('"passed"', '"maybe"'), id="unknown status"),
        pytest.param(lambda text: "[" * 100_000 + "]" * 100_000, id="deep"),
        pytest.param(lambda text: f'{{"schema_version": {"9" * 5000}}}', id="digits"),
        pytest.param(lambda text: "\0" * 1000, id="zeros"),
    ],
)
def test_a_record_that_cannot_be_read_is_as_missing_and_hides_no_other(damaged, damage):
    run, records = damaged(damage)
    assert run.read_record(records[0].point, 0) is None
    assert list(Run(run).records()) == records[1:]
    run.write_record(records[0])
    assert run.read_record(records[0].point, 0) == records[0]


def test_a_record_of_another_schema_version_is_refused_where_it_would_be_resumed(damaged):
    run, records = damaged(lambda text: text.replace('"schema_version": 5', '"schema_version": 6'))
    with pytest.raises(UserError, match="schema 6"):
        run.read_record(records[0].point, 0)
    assert list(Run(run).records()) == records[1:]
    (line,) = run.strays
    assert "written by a newer orbax-bench (schema 6" in line


def zeros(path):
    with path.open("wb") as file:
        file.truncate(2**28)


def link(path):
    path.symlink_to("nowhere")


@pytest.mark.parametrize("damage", [zeros, link], ids=lambda damage: damage.__name__)
def test_what_stands_in_the_way_of_a_record_is_one_message(make_run, make_record, damage):
    run, record = make_run([make_record()]), make_record()
    path = Path(run.root / "records" / record.point_id / "repeat_0" / "host_0.json")
    path.unlink()
    damage(path)
    if damage is zeros:
        assert run.read_point(record.point).records == ()
        assert "larger than 64 MiB" in run.strays[0]
    else:
        with pytest.raises(UserError, match=r"host_0\.json: cannot be read"):
            run.read_point(record.point)
    with pytest.raises(UserError, match=r"host_0\.json: cannot be read"):
        run.read_record(record.point, 0)
    with pytest.raises(UserError, match=r"host_0\.json: cannot be read"):
        check_versions(run, [record.point])
    with pytest.raises(OSError, match=r"Larger than|A link to what is not there"):
        run.write_record(record)


def test_a_record_that_nobody_would_read_says_so_in_its_place(make_run, make_record):
    record = make_record(notes={"save": ["x" * 70 * 2**20]})
    run = make_run([], points=[record.point])
    assert run.write_record(record).status == "failed"
    (read,) = Run(run).records()
    assert read.error.type == "Unrecordable"
    assert "samples and 1 notes are not kept: a file of" in read.error.message


def test_records_come_by_point_then_warm_ups_then_repeats_in_order(
    make_run, make_record, make_point
):
    first, second = make_point(options={"a": 1}), make_point(options={"a": 2})
    warmup = make_record(first, warmup=True)
    repeats = [make_record(first, repeat) for repeat in range(11)]
    other = make_record(second)
    run = make_run([other, *reversed(repeats), warmup], points=[first, second])
    assert list(Run(run).records()) == [warmup, *repeats, other]


def test_the_next_warm_up_is_the_first_without_a_record(make_run, make_record, make_point):
    run = make_run([make_record(repeat=0, warmup=True), make_record(repeat=1, warmup=True)])
    assert run.next_warmup(make_point()) == 2


def test_a_repeat_is_read_over_all_its_hosts(make_run, make_record, make_point):
    point = make_point(processes=2)
    hosts = [make_record(point, host=host, num_hosts=2) for host in range(2)]
    run = make_run(hosts)
    assert run.read_repeat(point, 0) == repeat_over({0: hosts[0], 1: hosts[1]}, 2)


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        (["passed", "passed"], "passed"),
        (["skipped", "skipped"], "skipped"),
        (["passed", "failed"], "failed"),
        (["passed", "skipped"], "failed"),
        (["passed"], "failed"),
        ([], "failed"),
    ],
)
def test_a_repeat_passes_when_every_host_says_so(make_record, statuses, status):
    records = {
        host: make_record(host=host, status=one, error=None if one == "passed" else ERROR)
        for host, one in enumerate(statuses)
    }
    repeat = repeat_over(records, 2)
    assert (repeat.status, repeat.finished) == (status, status != "failed")


def test_a_repeat_failed_for_the_reason_of_the_host_that_failed_first(make_record):
    peer = ErrorInfo(type=PEER_FAILED, message="host 1 failed")
    records = {
        0: make_record(status="failed", error=peer),
        1: make_record(status="failed", error=ERROR),
    }
    assert repeat_over(records, 2).error == ERROR


def test_data_of_a_repeat_can_be_removed_without_its_record(make_run, make_record):
    record = make_record()
    run = make_run([record])
    data = run.data_path(record.point, 0, warmup=False)
    (data / "ckpt").mkdir(parents=True)
    for _ in range(2):  # what is not there needs no removing
        run.remove_data(record.point, 0, warmup=False)
    assert not data.exists()
    assert run.read_record(record.point, 0) == record


def test_an_expansion_with_skipped_points_is_read_back(tmp_path, make_point):
    skipped = [{"point": make_point(), "reason": "too small"}]
    expansion = Expansion(points=(make_point(),), skipped=skipped, notes=("a note",))
    run = RunDirectory(str(tmp_path))
    run.start(suite(), expansion)
    assert run.read_info().expansion == expansion


def test_data_lies_on_the_storage_of_its_point_apart_from_other_runs(
    make_run, make_record, make_point, tmp_path
):
    point = make_point(storage=str(tmp_path / "disk"))
    runs = [make_run([make_record(point)], folder=name) for name in ("one", "other")]
    paths = [run.data_path(point, 0, warmup=False) for run in runs]
    assert all(str(path).startswith(str(tmp_path / "disk")) for path in paths)
    assert len(set(paths)) == 2


def test_each_arm_has_the_storage_that_it_asks_for(make_run, make_record, make_point, tmp_path):
    point = make_point()
    pair = Pair(baseline=point, candidate=point.replace(storage=str(tmp_path / "disk")))
    run = make_run([make_record(pair)], points=[pair])
    baseline = run.data_path(pair, 0, warmup=False, arm="baseline")
    candidate = run.data_path(pair, 1, warmup=False, arm="candidate")
    assert str(baseline).startswith(str(run.root))
    assert str(candidate).startswith(str(tmp_path / "disk"))


def pair_suite(gate="{}"):
    return parse_suite(
        f"suite_name: pairs\ngate: {gate}\n"
        "benchmarks:\n- {generator: save_restore, options: {}}\n"
        "arms: {candidate: {processes: 2}}\n",
        "suite.yaml",
    )


def test_the_design_of_a_pair_is_frozen_with_the_rules(tmp_path, make_record):
    begun = start(tmp_path, pair_suite())
    assert [design.workers for design in begun.designs.values()] == ["lives"]
    later = start(tmp_path, pair_suite("{operations_per_life: 4}"))
    assert [design.operations_per_life for design in later.designs.values()] == [4]
    (pair,) = later.expansion.pairs
    record = make_record(pair, arm="baseline", block=0, life=0, run_id=later.run_id)
    RunDirectory(str(tmp_path)).write_record(record)
    with pytest.raises(UserError, match="operations_per_life 4 -> 2"):
        start(tmp_path, pair_suite())


def test_the_design_follows_what_is_known_of_processes_when_the_run_begins(tmp_path):
    loaded = pair_suite()
    info = RunDirectory(str(tmp_path)).start(
        loaded,
        expand_here(loaded),
        process_noise=lambda pair, gate: ProcessNoise(offset_high=0.005),
    )
    (design,) = info.designs.values()
    assert (design.workers, design.left_open) == ("one_per_arm", 0.005)


def test_the_order_of_the_arms_follows_from_the_seed_or_else_from_the_run(tmp_path):
    def orders(folder, gate):
        info = start(tmp_path / folder, pair_suite(gate))
        (pair,) = info.expansion.pairs
        return [info.order(pair, block) for block in range(20)]

    assert orders("a", "{seed: 5}") == orders("b", "{seed: 5}")
    assert orders("c", "{}") != orders("d", "{}")
