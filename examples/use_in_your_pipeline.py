"""Our components in a pipeline of your own, between components that know nothing of them.

A team has a step that says what its model looks like, and one that acts on the answer. Between
them, the model's checkpoint is saved and loaded with and without compression.

    python examples/use_in_your_pipeline.py /tmp/bench
    python examples/use_in_your_pipeline.py /tmp/bench --docker

run it here, each step a process or a container. kfp's compiler makes a package of it, for a cluster
or Vertex AI:

    kfp dsl compile --py examples/use_in_your_pipeline.py --output mine.yaml
"""

import os
import sys
from pathlib import Path

from kfp import components, dsl

COMPONENTS = Path(__file__).parents[1] / "components"
IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")
"""Yours, in a registry that the cluster reaches, best by digest: `NAME@sha256:DIGEST`."""


def ours(name):
    """Loads one of the compiled components; a URL does as well, with `load_component_from_url`."""
    return components.load_component_from_file(str(COMPONENTS / name / "component.yaml"))


plan_sweep, run_sweep_point, aggregate, enforce_verdict, finish = map(
    ours, ("plan_sweep", "run_sweep_point", "aggregate", "enforce_verdict", "finish")
)
RUN = {"pipeline_run": dsl.PIPELINE_JOB_ID_PLACEHOLDER}
"""Every component of ours takes it: an input that differs per run is never in a cache."""


@dsl.component(base_image="python:3.12-slim")
def describe_model(width: int) -> str:
    """Stands for a step of yours that knows the model, and returns a suite: YAML, or JSON."""
    import json

    weights = {"dtype": "bfloat16", "shape": [width, width], "sharding": ["fsdp"]}
    suite = {
        "suite_name": "compression for our model",
        "num_repeats": 2,
        "checkpoint_config": {"spec": {"weights": weights}},
        "mesh_config": {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": 4}},
        "benchmarks": [
            {"generator": "save_restore", "options": {"use_compression": [True, False]}}
        ],
    }
    return json.dumps(suite)


@dsl.component(base_image="python:3.12-slim")
def choose_fastest(metrics: dsl.Input[dsl.Metrics]) -> str:
    """Stands for a step of yours that acts on the answer: here it names the fastest save."""
    saves = {name: value for name, value in metrics.metadata.items() if name.endswith(" save s")}
    fastest = min(saves, key=saves.get)
    print(f"Fastest: {fastest}")
    return fastest


@dsl.pipeline(name="choose-compression")
def choose_compression(output_directory: str, width: int = 1024):
    """Measures the checkpoint of a model with every option, and picks one."""
    # Whatever becomes of the others, also of yours, this step writes the report of what is there.
    ended = finish(output_directory=output_directory, **RUN)
    with dsl.ExitHandler(ended):
        model = describe_model(width=width)
        plan = plan_sweep(suite=model.output, output_directory=output_directory, **RUN)
        with dsl.ParallelFor(plan.outputs["Output"]) as points:
            measured = run_sweep_point(point=points, output_directory=output_directory, **RUN)
        planned = plan.outputs["planned"]
        results = aggregate(output_directory=output_directory, planned=planned, **RUN)
        results.after(measured)
        enforced = enforce_verdict(lacking=results.outputs["Output"], **RUN)
        choose_fastest(metrics=results.outputs["metrics"]).after(enforced)
    for ours_alone in (ended, plan, measured, results, enforced):
        ours_alone.set_caching_options(False)  # never a figure of another run
        ours_alone.set_container_image(IMAGE)
        ours_alone.set_env_variable("ORBAX_BENCH_IMAGE", IMAGE)  # what ran, for the records


if __name__ == "__main__":
    from orbax_bench_pipelines.targets.docker import run_in_docker
    from orbax_bench_pipelines.targets.local import run_locally

    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--docker"]):
        sys.exit(
            "usage: python examples/use_in_your_pipeline.py DIR [--docker]\n"
            "DIR: where the results go"
        )
    results = Path(sys.argv[1]).absolute()
    run = run_in_docker if sys.argv[2:] else run_locally
    results.mkdir(parents=True, exist_ok=True)
    with (results / "steps.log").open("w+") as log:
        run(choose_compression, {"output_directory": str(results)}, log=log, say=print)
        log.seek(0)
        print(*(line.strip() for line in log if line.strip().startswith("Fastest: ")), sep="\n")
    print(f"Report: {results / 'report.html'}")
