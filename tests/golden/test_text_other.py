"""Commands about the machine, the built-ins, a suite's points, and where results come from."""

from pathlib import Path

import pytest

from tests.golden.text_support import (  # noqa: F401
    known_devices,
    known_limits,
    shell,
    tmp_path,
    transcript,
)
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITE = """\
suite_name: many points
checkpoint_configs:
- spec: {params: {dtype: bfloat16, shape: [64, 64], sharding: [fsdp]}}
- {model: gpt2, scale: 0.01}
mesh_configs:
- {mesh_axes: [fsdp], ici_parallelism: {fsdp: 8}}
- {mesh_axes: [data, fsdp], ici_parallelism: {data: 2, fsdp: 4}}
benchmarks:
- {generator: save_restore, options: {use_ocdbt: [true, false], enable_trace: true}}
- {generator: array_handler, options: {}}
execution: {cache: [warm, cold]}
"""


def test_points_of_suites(shell, golden):
    suite = shell.write("suite.yaml", SUITE)
    said = [shell("expand", suite), shell("expand", suite, "--override", "execution.cache=warm")]
    for name in ("tour", "compression", "resharding", "framework_comparison"):
        text = (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")
        said.append(shell("expand", shell.write(f"{name}.yaml", text)))
    said.append(shell("expand", "tour.yaml", "--json"))
    golden("text/other/expand.txt", transcript(*said))


@pytest.mark.slow
def test_built_ins(shell, golden):
    golden("text/other/list.txt", shell.views("list"))


def test_pipelines(shell, golden):
    golden("text/other/pipeline_list.txt", str(shell("pipeline", "list")))


def test_limits_of_a_machine(shell, known_limits, golden):
    said = [shell.views("limits", "--path", ".", "--no-lock")]
    said.append(shell("limits", "--path", ".", "--no-lock", "--json"))
    golden("text/other/limits.txt", transcript(*said))


def test_what_a_machine_has(shell, known_devices, golden):
    said = shell("doctor", width=100, terminal=True)
    rows = [line.split("│") for line in said.out.splitlines()]
    facts = {row[1].strip(): row[2].strip() for row in rows if len(row) > 2}
    shown = [name if name != "devices" else f"{name}: {facts[name]}" for name in facts if name]
    golden("text/other/doctor.txt", "\n".join([*shown, f"exit code {said.code}"]) + "\n")


@pytest.fixture
def judged(shell, make_separate_run):
    """A run that was published and compared with another."""
    make_separate_run(0, folder="before", repeats=2)
    make_separate_run(1, folder="after", repeats=2)
    shell("report", "before")
    shell("report", "after")


def test_lineage(shell, judged, golden):
    said = [shell("lineage", "after"), shell("lineage", "after/samples.parquet")]
    (shell.folder / "after/report.md").write_text("something else")
    said.append(shell("lineage", "after/report.md"))
    (shell.folder / "after/samples.parquet").unlink()
    said.append(shell("lineage", "after"))
    shell("baseline", "capture", "reg", "before", "--label", "v1")
    (capture,) = (shell.folder / "reg/v1").glob("*.json")
    said.append(shell("lineage", capture.relative_to(shell.folder)))
    said += [shell("lineage", "reg"), shell("lineage", "nowhere")]
    golden("text/other/lineage.txt", transcript(*said))
