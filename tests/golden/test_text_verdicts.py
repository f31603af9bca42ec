"""Verdicts on the terminal, in Markdown and in HTML, and the exit codes that go with them."""

import json

import pytest

from tests.golden.text_support import (  # noqa: F401
    begin,
    fill_blocks,
    interrupted,
    shell,
    tmp_path,
)
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401

SUITE = """\
suite_name: a comparison
gate: {max_stalls: null, max_failures: null}
checkpoint_config: {spec: {params: {dtype: bfloat16, shape: [64, 64], sharding: [fsdp]}}}
mesh_config: {mesh_axes: [fsdp], ici_parallelism: {fsdp: 8}}
benchmarks:
- {generator: save_restore, options: {use_zarr3: SWEPT}}
arms: {baseline: {options: {use_ocdbt: true}}, candidate: {options: {use_ocdbt: false}}}
"""
TWO_POINTS = SUITE.replace("SWEPT", "[true, false]")
SUITE = SUITE.replace("SWEPT", "true")
FLAGS = ("-o", "out", "--no-lock")
CASES = {
    "pass": ({}, {"terminal": True}, ["--verbose"]),
    "regression": ({"ratios": (1.5, 1.0)}, {}, []),
    "inconclusive": ({"sigma": 0.6, "blocks": 30}, {}, []),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_comparison_that_is_done(shell, begin, fill_blocks, golden, name):
    fields, how, flags = CASES[name]
    suite = shell.write("suite.yaml", TWO_POINTS if name == "regression" else SUITE)
    fill_blocks(begin(suite, "out"), **fields)
    said = [shell("ab", suite, *FLAGS, *flags, **how), shell.views("compare", "out")]
    said.append(shell("compare", "out", "--allow-inconclusive"))
    golden(f"text/verdicts/{name}.txt", "\n".join(map(str, said)))
    if name == "regression":
        golden(f"text/verdicts/{name}.md", shell.read("out/verdicts.md"))
    golden(f"text/verdicts/{name}.html.txt", shell.page("out/verdicts.html"))


@pytest.mark.slow
def test_progress_of_a_comparison_for_machines(shell, begin, fill_blocks, golden):
    suite = shell.write("suite.yaml", SUITE)
    fill_blocks(begin(suite, "out"), ratios=(0.7, 0.8))
    lines = []
    for text in shell("ab", suite, *FLAGS, "--log-format", "json").out.splitlines():
        line = json.loads(text)
        line["time"] = "TIME"
        lines.append(f"{json.dumps(line)}\n")
    golden("text/verdicts/log.json", "".join(lines[:2] + lines[-2:]))


def test_a_comparison_that_is_interrupted(shell, begin, interrupted, golden):
    suite = shell.write("suite.yaml", SUITE)
    begin(suite, "out")
    golden("text/verdicts/interrupted.txt", str(shell("ab", suite, *FLAGS)))


def test_arms_from_the_command_line(shell, golden):
    alone = shell.write("suite.yaml", SUITE.partition("arms:")[0])
    given = ("use_ocdbt", "use_ocdb=false", "use_ocdbt=perhaps", "processes=many")
    given += ("environment=new", "generator=restore_save", "use_ocdbt=[true,false]")
    said = [shell("ab", alone, *FLAGS), shell("ab", alone, *FLAGS, "--aa", "-c", "use_ocdbt=false")]
    said += [shell("ab", alone, *FLAGS, "-c", value) for value in given]
    said += [shell("ab", alone, *FLAGS, "-b", value) for value in ("=1", "use_ocdbt=perhaps")]
    said.append(shell("ab", shell.write("arms.yaml", SUITE), *FLAGS, "-c", "use_ocdbt=true"))
    said.append(shell("ab", "arms.yaml", *FLAGS, "--aa"))
    golden("text/verdicts/arm_flags.txt", "\n".join(map(str, said)))


def test_runs_that_were_made_apart(shell, make_separate_run, make_point, golden):
    before = make_separate_run(0, folder="before")
    make_separate_run(1, 1.5, folder="after")
    make_separate_run(2, point=make_point(options={"use_ocdbt": False}, label="x"), folder="other")
    assert before.root.exists()
    said = [shell.views("compare", "before", "after"), shell.views("compare", "before", "other")]
    golden("text/verdicts/unpaired.txt", "\n".join(map(str, said)))
