"""Airflow DAGs: a sweep, and a nightly comparison that fails on a regression.

Put this file and a suite into the folder of your DAGs, and orbax-bench into an environment next to
Airflow's own: `BENCH` is its command.
"""

import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG, Asset

from orbax_bench_airflow import RUN, Local, regression, sweep

HERE = Path(__file__).parent
BENCH = Local(command=os.environ.get("ORBAX_BENCH", "orbax-bench"))
RUNS = os.environ.get("ORBAX_BENCH_RUNS", "/shared/runs")
START = pendulum.datetime(2026, 1, 1)

with DAG("checkpoint_sweep", schedule=None, start_date=START):
    sweep(str(HERE / "sweep.yaml"), f"{RUNS}/sweep-{RUN}", place=BENCH)

with DAG("checkpoint_regression", schedule="0 3 * * *", start_date=START, catchup=False):
    regression(
        str(HERE / "regression.yaml"),
        f"{RUNS}/regression-{RUN}",
        place=BENCH,
        verdict=Asset("checkpoint-verdict"),
    )
