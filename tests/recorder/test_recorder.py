"""The recorder inside a job: what it imports, and that nothing that happens to it reaches a job."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orbax_bench_core.analysis.recording import read_recording
from orbax_bench_core.recorder import Summary, stall_limit
from tests.golden.support import orbax_bench

ROOT = Path(__file__).parents[2]
CODE = ROOT / "orbax_bench_core" / "recorder"
OF_THE_JOB = {"jax", "orbax", "etils"}


def run_python(code, *flags, **variables):
    done = subprocess.run(
        [sys.executable, *flags, "-c", code],
        env={**os.environ, "JAX_PLATFORMS": "cpu", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines_of(folder):
    files = sorted(Path(folder).glob("host_*/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_it_imports_the_standard_library_and_what_a_job_has():
    for file in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            for name in names:
                first = name.partition(".")[0]
                ours = name.startswith("orbax_bench_core.recorder")
                known = first in sys.stdlib_module_names | OF_THE_JOB | {
                    "sitecustomize",
                    "_orbax_bench_imports",
                }
                assert ours or known, f"{file.name} imports {name}"


def test_it_is_imported_without_any_other_package():
    code = f"import sys; sys.path = [{str(ROOT)!r}, *sys.path]; import orbax_bench_core as ours"
    code += (
        "; ours.record; ours.recorder; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    loaded = set(run_python(code, "-I", "-S").split())
    assert loaded <= sys.stdlib_module_names | {"orbax_bench_core", "__main__"}


JOB = """
import os, sys, time
import orbax_bench_core
recorder = orbax_bench_core.record(sys.argv[1] if len(sys.argv) > 1 else {folder!r})
{before}
import jax, jax.monitoring, numpy as np, orbax.checkpoint as ocp
{after}
tree = dict(a=np.arange(64.0))
with ocp.CheckpointManager({checkpoints!r}) as manager:
    for step in range(4):
        manager.save(step, args=ocp.args.StandardSave(tree))
        recorder.step()
    manager.wait_until_finished()
    loaded = manager.restore(3, args=ocp.args.StandardRestore(tree))
assert (loaded["a"] == tree["a"]).all()
{end}
recorder.close()
print("unharmed", recorder.summary().errors)
"""


def run_job(tmp_path, *, folder=None, before="", after="", end=""):
    places = {"folder": str(folder or tmp_path / "rec"), "checkpoints": str(tmp_path / "ck")}
    out = run_python(JOB.format(**places, before=before, after=after, end=end))
    unharmed, errors = out.split()[-2:]
    assert unharmed == "unharmed"
    return int(errors)


@pytest.mark.slow
def test_a_job_is_unharmed_by_hooks_that_raise(tmp_path):
    broken = (
        "from orbax_bench_core.recorder.operations import Tracker\n"
        "def bad(*args, **kwargs): raise RuntimeError('a mistake of the recorder')\n"
        "for name in ('enter', 'starts', 'event', 'completes', 'commit_begins', 'finished'):\n"
        "    setattr(Tracker, name, bad)\n"
        "import orbax_bench_core.recorder.hooks as hooks\n"
    )
    assert run_job(tmp_path, before=broken) == 20


@pytest.mark.slow
def test_a_job_is_unharmed_where_nothing_can_be_written(tmp_path):
    assert run_job(tmp_path, folder="/dev/full/recording") >= 1


@pytest.mark.slow
def test_a_place_that_cannot_be_written_for_long_costs_no_line(tmp_path):
    """Neither that of the recording nor that of the figures switches the recorder off."""
    blocked, metrics = tmp_path / "blocked", tmp_path / "file" / "metrics"
    blocked.write_text("")
    metrics.parent.write_text("")
    before = (
        "import orbax_bench_core.recorder.recorder as ours\n"
        "ours._AGAIN_S = 0.0\n"
        f"recorder._openmetrics = {str(metrics)!r}"
    )
    end = (
        "def save(name):\n"
        f"    ocp.PyTreeCheckpointer().save({str(tmp_path)!r} + name, tree)\n"
        "    time.sleep(0.1)\n"
        "for number in range(25): save(f'/a{number}')\n"
        f"os.remove({str(blocked)!r})\n"
        "for number in range(25): save(f'/b{number}')"
    )
    assert run_job(tmp_path, folder=blocked / "rec", before=before, end=end) == 2
    found = read_recording(str(blocked / "rec"))
    assert [one.fate for one in found.saves] == ["committed"] * 54
    assert found.lives[0].is_closed


@pytest.mark.slow
def test_a_job_is_unharmed_without_a_client_of_its_bucket(tmp_path):
    missing = "sys.modules['gcsfs'] = sys.modules['tensorflow'] = None"
    assert 1 <= run_job(tmp_path, folder="gs://bucket/recording", before=missing) <= 3


@pytest.mark.slow
def test_a_job_that_clears_the_listeners_is_recorded_by_its_calls(tmp_path):
    run_job(tmp_path, after="jax.monitoring.clear_event_listeners()")
    saves = read_recording(str(tmp_path / "rec")).saves
    assert [save.step for save in saves] == [0, 1, 2, 3]
    assert all(save.is_whole for save in saves)


REFUSED = """
import sys, numpy as np, orbax_bench_core
{import_first}
with orbax_bench_core.record({recording!r}):
    from orbax.checkpoint import v1 as ocp
    tree = dict(a=np.arange(64.0))
    ocp.save({checkpoint!r}, tree)
    for save in (ocp.save, ocp.save_async):
        try:
            print(save({checkpoint!r}, tree).result())
        except ValueError:
            pass
    ocp.save_async({checkpoint!r} + "_more", tree).result()
"""


@pytest.mark.slow
@pytest.mark.parametrize("import_first", ["", "import orbax.checkpoint"])
def test_a_save_of_v1_whose_call_raises_has_failed(tmp_path, import_first):
    places = {"recording": str(tmp_path / "rec"), "checkpoint": str(tmp_path / "ck")}
    run_python(REFUSED.format(**places, import_first=import_first))
    saves = read_recording(str(tmp_path / "rec")).saves
    assert [save.fate for save in saves] == ["committed", "failed", "failed", "committed"]
    assert all("already exists" in save.error for save in saves[1:3])
    said = orbax_bench("diagnose", tmp_path / "rec").out
    assert "2 of 4 saves failed" in said
    assert "it failed in the call" in said


OF_STRANGERS = """
import threading, orbax_bench_core
with orbax_bench_core.record({recording!r}):
    import jax, orbax.checkpoint as ocp
    tree = dict(a=jax.random.normal(jax.random.key(0), 2**18, "float32"))
    two = ocp.args.Composite(model=ocp.args.StandardSave(tree), ema=ocp.args.StandardSave(tree))
    with ocp.CheckpointManager({checkpoints!r} + "/of_items") as manager:
        for step in (10, 20):
            manager.save(step, args=two)
    def fails():
        raise OSError("no room")
    options = ocp.options.AsyncOptions(post_finalization_callback=fails)
    checkpointer = ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler(), async_options=options)
    for number in range(2):
        try:
            checkpointer.save({checkpoints!r} + f"/{{number}}", tree)
        except OSError:
            pass
    def aside():
        with ocp.StandardCheckpointer() as own:
            own.save({checkpoints!r} + "/aside", tree)
            own.wait_until_finished()
    thread = threading.Thread(target=aside, name="saver")
    thread.start()
    thread.join()
"""


@pytest.mark.slow
def test_two_items_a_save_that_an_earlier_failure_refuses_and_two_steps_far_apart(tmp_path):
    places = {"recording": str(tmp_path / "rec"), "checkpoints": str(tmp_path / "ck")}
    run_python(OF_STRANGERS.format(**places))
    found = read_recording(str(tmp_path / "rec"))
    fates = ["committed", "committed", "failed", "failed", "committed"]
    assert [save.fate for save in found.saves] == fates
    assert [save.thread for save in found.saves] == ["", "", "", "", "saver"]
    assert [save.first.num_bytes for save in found.saves[:2]] == [2**21, 2**21]
    assert not found.lives[0].steps  # 10 steps lie between two saves, none of which was heard


@pytest.mark.slow
def test_a_fork_of_a_job_leaves_nothing(tmp_path):
    child = (
        "pid = os.fork()\n"
        "if not pid:\n"
        "    jax.monitoring.record_event('/jax/orbax/write/of_the_child')\n"
        "    recorder.step(); recorder.close(); os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    assert run_job(tmp_path, end=f"import warnings; warnings.simplefilter('ignore')\n{child}") == 0
    lines = lines_of(tmp_path / "rec")
    assert [line["line"] for line in lines].count("close") == 1
    assert "of_the_child" not in json.dumps(lines)


@pytest.mark.slow
def test_a_line_cut_by_a_full_disk_costs_no_other(tmp_path):
    code = f"""
import resource, signal
from orbax_bench_core.recorder.lines import LinesFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = LinesFile({str(tmp_path)!r}, 0)
file.write([dict(line="a", text="x" * 50)])
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
for number in range(3):
    try:
        file.write([dict(line="b", number=number)])
    except OSError:
        pass
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
file.write([dict(line="c")])
"""
    run_python(code, PYTHONPATH=str(ROOT))
    (file,) = tmp_path.glob("host_00000/*.jsonl")
    texts = file.read_text().splitlines()
    whole = [json.loads(text) for text in texts if text.startswith("{") and text.endswith("}")]
    assert [(line["line"], line.get("number")) for line in whole] == [
        ("a", None),
        ("b", 0),
        ("b", 1),
        ("b", 2),
        ("c", None),
    ]


def test_a_stall_is_far_beyond_what_is_usual():
    assert stall_limit([0.9 if number % 20 == 0 else 0.2 for number in range(100)]) == 2.0
    assert stall_limit([0.9 if number % 5 == 0 else 0.2 for number in range(100)]) == 3.7


def test_the_summary_is_a_file_of_metrics(tmp_path):
    summary = Summary(seconds=100.0, committed=3, failed=1, blocked_s=2.0, last_commit=1e9)
    assert str(summary).startswith("4 saves (1 failed) blocked 2 s, 2.0 % of the time")
    assert "blocked 1235 s, 1.2 %" in str(Summary(seconds=1e5, blocked_s=1234.6))
    summary.write(str(tmp_path / "made" / "orbax_0.prom"))
    (file,) = (tmp_path / "made").iterdir()
    lines = file.read_text().splitlines()
    assert 'orbax_saves_total{state="failed"} 1' in lines
    assert lines[-1] == "# EOF"


@pytest.mark.nightly
def test_a_thousand_saves_warn_of_nothing_but_what_the_machine_held_up(tmp_path):
    code = f"""
import logging, sys
import numpy as np, orbax.checkpoint as ocp, orbax_bench_core
logging.getLogger("orbax_bench.recorder").addHandler(logging.StreamHandler(sys.stdout))
with orbax_bench_core.record({str(tmp_path / "rec")!r}) as recorder:
    with ocp.CheckpointManager({str(tmp_path / "ck")!r}, options=ocp.CheckpointManagerOptions(
            max_to_keep=1)) as manager:
        for step in range(1000):
            manager.save(step, args=ocp.args.StandardSave(dict(a=np.arange(64.0))))
    recorder.close()
print(recorder.summary().committed)
"""
    *warnings, committed = run_python(code).splitlines()
    assert committed == "1000"
    lines = lines_of(tmp_path / "rec")
    took = {line["step"]: line["total_s"] for line in lines if line["line"] == "end"}
    # A busy machine may hold up a save for seconds: that is a stall, and no false warning.
    held_up = {step for step, seconds in took.items() if seconds > 1}
    stalls = {line["step"] for line in lines if line["line"] == "stall"}
    assert stalls <= held_up | ({None} if held_up else set())  # a wait for one has no step
    assert bool(warnings) == bool(stalls)
