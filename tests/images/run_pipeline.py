"""Runs the sweep pipeline in containers while this process holds the measuring lock at first.

python run_pipeline.py SUITE OUTPUT_DIRECTORY USER LOG
"""

import contextlib
import sys
from pathlib import Path

from orbax_bench_core.execute import measuring_lock
from orbax_bench_pipelines.definitions import find_pipeline
from orbax_bench_pipelines.targets import Placement
from orbax_bench_pipelines.targets.docker import run_in_docker

suite, output_directory, user, log_file = sys.argv[1:]
console = sys.stdout  # while the pipeline runs, `sys.stdout` is its log

with contextlib.ExitStack() as held, Path(log_file).open("w") as log:
    held.enter_context(measuring_lock(print))

    def say(line):
        print(line, file=console, flush=True)
        if line.startswith("waiting"):
            held.close()

    run_in_docker(
        find_pipeline("sweep").build(Placement()),
        {
            "suite": Path(suite).read_text(),
            "output_directory": output_directory,
            "measure_limits": False,
        },
        log=log,
        say=say,
        user=user,
        container={"read_only": True, "tmpfs": {"/tmp": ""}},
    )
