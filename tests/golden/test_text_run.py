"""Text of a run of a suite: while it goes on, at its end, and in its pages."""

import json

import pytest

from tests.golden.text_support import (  # noqa: F401
    begin,
    eventful,
    fill,
    interrupted,
    shell,
    tmp_path,
)

SUITE = """\
suite_name: a small suite
num_repeats: 3
checkpoint_config: {spec: {params: {dtype: bfloat16, shape: [64, 64], sharding: [fsdp]}}}
mesh_config: {mesh_axes: [fsdp], ici_parallelism: {fsdp: 8}}
benchmarks:
- {generator: save_restore, options: {use_ocdbt: [true, false]}}
"""
FLAGS = ("-o", "out", "--no-lock", "--no-limits")


@pytest.mark.slow
def test_every_output_of_a_run_is_made_again(shell, eventful, golden):
    golden("text/run/report.txt", shell.views("report", "run"))
    golden("text/run/report.html.txt", shell.page("run/report.html"))


@pytest.mark.slow
def test_a_run_that_is_done(shell, begin, fill, golden):
    suite = shell.write("suite.yaml", SUITE)
    fill(begin(suite, "out"))
    said = [
        shell("run", suite, *FLAGS, width=80, terminal=True),
        shell("run", suite, *FLAGS, "--verbose", width=160, terminal=True),
        shell("run", suite, *FLAGS),
        shell(
            f"--config_file={suite}",
            "--output_directory=out",
            "--no-lock",
            "--no-limits",
            program="run_benchmarks",
        ),
    ]
    golden("text/run/done.txt", "\n".join(map(str, said)))


def test_progress_of_a_run_for_machines(shell, begin, fill, golden):
    suite = shell.write("suite.yaml", SUITE)
    fill(begin(suite, "out"))
    said = shell("run", suite, *FLAGS, "--log-format", "json")
    lines = [json.loads(line) for line in said.out.splitlines()]
    for line in lines:
        line["time"] = "TIME"
    golden("text/run/log.json", "".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("one_point_failed", {"failing": "use_ocdbt=false"}),
        ("all_points_skipped", {"failing": "save_restore", "status": "skipped"}),
    ],
)
def test_a_run_in_which_points_did_not_pass(shell, begin, fill, golden, name, fields):
    suite = shell.write("suite.yaml", SUITE)
    fill(begin(suite, "out"), **fields)
    outcome = shell("report", "out", width=100, terminal=True)
    if fields.get("status") == "skipped":
        outcome = f"{outcome}\n{shell('run', suite, *FLAGS)}"
    golden(f"text/run/{name}.txt", str(outcome))


def test_a_run_that_is_interrupted(shell, begin, fill, interrupted, golden):
    suite = shell.write("suite.yaml", SUITE)
    begin(suite, "out")
    golden("text/run/interrupted.txt", str(shell("run", suite, *FLAGS)))
