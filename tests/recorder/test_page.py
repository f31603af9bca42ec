"""The page training-job: its script, recorded and diagnosed by its commands in their order."""

import shlex
from pathlib import Path

import pytest

from tests.support.blocks import ROOT, blocks_of, commands_of, run_in_shell, write_program

PAGE = "docs/training-job.md"
LOGGED = Path(__file__).parent / "jobs" / "logged.py"


@pytest.mark.nightly
def test_the_commands_of_the_page_do_what_it_says(tmp_path):
    (script,) = (block for block in blocks_of(PAGE) if block.title == "train.py")
    (tmp_path / "train.py").write_text(script.text)
    programs = tmp_path / "bin"
    write_program(programs / "orbax-bench", "-m orbax_bench_core.cli")
    write_program(programs / "python", "")
    # The job as it was before anybody recorded it, with its log.
    (tmp_path / "before").mkdir()
    job = f"python {shlex.quote(str(LOGGED))} ../train.py 2>../train.log"
    run_in_shell(job, tmp_path / "before", programs)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in commands_of(PAGE):
        done = run_in_shell(command, tmp_path, programs)
        # What is wrong with the job on a loaded machine has an exit code of its own.
        assert done.returncode <= ("diagnose" in command), f"{command}\n{done.stderr}"
        if "diagnose" in command:
            told = "the log does not say whether" if "job_log" in command else "6 committed"
            assert told in done.stdout
    assert (tmp_path / "results" / "report.html").exists()
