"""DAGs in which something goes wrong; their workers are fakes."""

import datetime
import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG, Asset

from orbax_bench_airflow import RUN, Local, regression, sweep

HERE = Path(os.environ["FAULTS"])
BENCH = Local(command=str(HERE / "fake-bench"))
KNOWN = {
    "schedule": None,
    "start_date": pendulum.datetime(2026, 1, 1),
    "default_args": {"retry_delay": datetime.timedelta(seconds=0.1)},
}

with DAG("bad_suite", **KNOWN):
    sweep(str(HERE / "bad.yaml"), str(HERE / "bad"), place=BENCH)

with DAG("lost_point", **KNOWN):
    sweep(str(HERE / "lost.yaml"), str(HERE / "lost"), place=BENCH, retries=1, points_per_task=1)

with DAG("finish_dies", **KNOWN):
    sweep(str(HERE / "bad.yaml"), str(HERE / "unfinished" / RUN), place=BENCH, retries=0)

with DAG("one_folder", **KNOWN):
    sweep(str(HERE / "few.yaml"), str(HERE / "one"), place=BENCH)

with DAG("many_fit", **KNOWN):
    sweep(str(HERE / "many.yaml"), str(HERE / "fit" / RUN), place=BENCH)

with DAG("many_do_not_fit", **KNOWN):
    sweep(str(HERE / "many.yaml"), str(HERE / "unfit" / RUN), place=BENCH, points_per_task=1)

with DAG("same", **KNOWN):
    regression(
        *(str(HERE / "same.yaml"), str(HERE / "same")),
        place=BENCH,
        registry=str(HERE / "registry"),
    )

with DAG("slower", **KNOWN):
    regression(
        str(HERE / "slower.yaml"), str(HERE / "slower"), place=BENCH, verdict=Asset("verdict")
    )

LONGEST = datetime.timedelta(seconds=30)
for name, bounds in (
    ("nightly", {}),
    ("bounded_steps", {"default_args": {"execution_timeout": LONGEST}}),
    ("bounded_run", {"dagrun_timeout": 1.5 * LONGEST}),
):
    with DAG(name, **KNOWN | bounds):
        regression(
            *(str(HERE / "nightly.yaml"), str(HERE / "nights" / RUN)), place=BENCH, retries=0
        )
