"""The class of this package in a pipeline: run right here, or compiled for a cluster.

python examples/own_package/pipeline.py run /tmp/partial
python examples/own_package/pipeline.py compile /tmp/partial.yaml

The components are those of orbax-bench; what makes them measure `PartialLoad` is the suite, which
names it, and the image, which holds it. `orbax-bench pipeline run` and `compile` with the setting
`image` do the same without any Python.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from orbax_bench_pipelines.definitions import find_pipeline
from orbax_bench_pipelines.targets import Placement, Settings, Target
from orbax_bench_pipelines.targets.local import run_locally

IMAGE = "my-benchmarks:0.1.0"  # of the Dockerfile next to this file
SUITE = Path(__file__).with_name("suite.yaml")


def run(output_directory: str, suite: Path = SUITE) -> None:
    """Runs each step as a process of this environment, which must have this package."""
    arguments = {"suite": suite.read_text(), "output_directory": output_directory}
    run_locally(_pipeline(Target.LOCAL), arguments, log=sys.stderr, say=print)


def compile_to(file: str) -> None:
    """Writes the pipeline as a package for Kubeflow; suite and output directory are parameters."""
    from kfp import compiler

    compiler.Compiler().compile(_pipeline(Target.KFP), file)


def _pipeline(target: Target) -> Any:
    return find_pipeline("sweep").build(Placement(target, Settings(image=IMAGE)))


if __name__ == "__main__":
    verbs = {"run": run, "compile": compile_to}
    if len(sys.argv) != 3 or sys.argv[1] not in verbs:
        sys.exit(
            "usage: python pipeline.py run DIR | compile FILE\n"
            "run: measure here, results in DIR; compile: write the pipeline's package to FILE"
        )
    verbs[sys.argv[1]](sys.argv[2])
