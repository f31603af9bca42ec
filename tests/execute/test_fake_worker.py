"""The fake worker says what the real one says: the protocol's events, and a real record."""

import os
import queue

import pytest

from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.execute.hosts import LocalHost
from orbax_bench_core.records import Record
from orbax_bench_core.sweep import SweepPoint
from orbax_bench_core.worker import EVENT, Done, Measured, Ready, Task, WorkerSetup
from tests.support.fake_worker import MODULE as FAKE_WORKER
from tests.support.processes import ROOT
from tests.support.scripted import NAME, ScriptedOptions

from .conftest import HERE

pytestmark = pytest.mark.slow

SPEC = {"spec": {"w": {"dtype": "float32", "shape": [8, 4]}}}
MISBEHAVING = {"act": "behave", "only_once": False, "on_host": None}


@pytest.mark.parametrize(
    ("module", "benchmark", "options"),
    [
        pytest.param(LocalHost.module, "misbehaving.Misbehaving", MISBEHAVING, id="real"),
        pytest.param(FAKE_WORKER, NAME, vars(ScriptedOptions()), id="fake"),
    ],
)
def test_a_worker_says_what_the_protocol_has(module, benchmark, options, tmp_path):
    point = SweepPoint(
        benchmark=benchmark,
        options=options,
        given=tuple(options),
        checkpoint=CheckpointConfig.model_validate(SPEC),
        mesh=None,
    )
    if module == LocalHost.module:  # which measures into no directory without a run
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "run.json").touch()
    setup = WorkerSetup(root=str(tmp_path / "run"), x64=True, num_devices=1)
    task = Task(
        run_id="run", suite="s", config_hash="h", point=point, repeat=0, warmup=False, verify=True
    )
    inbox = queue.SimpleQueue()
    (worker,) = LocalHost(module=module).launch(
        [setup],
        environment={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)])},
        python="",
        logs=[tmp_path / "log"],
        inbox=inbox,
    )
    try:
        worker.send(task.model_dump_json())
        events = [EVENT.validate_json(inbox.get(timeout=60)[1]) for _ in range(4)]
        worker.dismiss()
        assert inbox.get(timeout=60) == (0, b""), "it ends once nobody has tasks for it"
    finally:
        worker.stop()
    assert [type(event) for event in events] == [Ready, Measured, Measured, Done]
    ready, first, second, done = events
    assert (ready.platform, done.status) == ("cpu", "passed")
    assert {"versions", "host", "devices"} <= ready.provenance.keys()
    (file,) = (tmp_path / "run" / "records").rglob("host_0.json")
    record = Record.model_validate_json(file.read_text())
    assert record.status == "passed"
    assert record.samples == (*first.samples, *second.samples)
    assert record.provenance["config_hash"] == "h"
