"""Both lives of a drilled repeat, and the local disk between them."""

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics
from orbax_bench_core.state import StateCache
from orbax_bench_core.worker import Task, WorkerSetup
from orbax_bench_core.worker.repeat import run_repeat


@authoring.benchmark_options(authoring.BenchmarkOptions)
class OnLocalDisk(authoring.BenchmarksGenerator):
    """Keeps a file on the local disk; its first life notices the kill of another process."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        kept = context.local_path / "kept"
        found = sorted(path.name for path in kept.parent.glob("*"))
        if context.drill.killed is None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text("1")
            raise OSError(f"a peer is gone; found {found}")
        metrics = Metrics()
        with metrics.measure("restore", ["time"]):
            assert found == ["kept"]
        return authoring.TestResult(metrics=metrics)


def live(folder, drill, make_point):
    task = Task(
        run_id="run",
        suite="s",
        config_hash="h",
        point=make_point(benchmark=f"{__name__}.OnLocalDisk"),
        repeat=0,
        warmup=False,
        host=0,
        num_hosts=1,
        verify=False,
        drill=drill,
    )
    local = str(folder / "local")
    setup = WorkerSetup(
        root=str(folder / "run"),
        x64=False,
        num_devices=1,
        local_directory=local,
    )
    return run_repeat(task, setup, StateCache(), {}, "worker", lambda _: None)


def test_the_life_after_a_kill_finds_the_local_disk_and_leaves_none(tmp_path, make_point):
    assert live(tmp_path, authoring.Drill(), make_point).error.message == "a peer is gone; found []"
    killed = authoring.Killed(steps=1, notice_s=0.1, start_s=0.1)
    record = live(tmp_path, authoring.Drill(killed=killed), make_point)
    assert (record.status, record.error) == ("passed", None)
    assert not list((tmp_path / "local").rglob("kept"))


def test_a_drill_that_was_stopped_leaves_nothing_for_the_next(tmp_path, make_point):
    live(tmp_path, authoring.Drill(), make_point)
    assert live(tmp_path, authoring.Drill(), make_point).error.message == "a peer is gone; found []"
