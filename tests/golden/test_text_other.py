"""Commands about the built-ins, a suite's points and pipelines."""

from pathlib import Path

import pytest

from tests.golden.text_support import (  # noqa: F401
    shell,
    tmp_path,
    transcript,
)

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
