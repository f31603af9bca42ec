"""DAGs whose steps are pods; variables name what a test has made for them."""

import datetime
import json
import os

import pendulum
from airflow.sdk import DAG

from orbax_bench_airflow import Kubernetes, regression, sweep

PLACE = Kubernetes(image=os.environ["CLUSTER_IMAGE"], pod=json.loads(os.environ["POD"]))
KNOWN = {
    "schedule": None,
    "start_date": pendulum.datetime(2026, 1, 1),
    "default_args": {"retry_delay": datetime.timedelta(seconds=10)},
}

for group in (sweep, regression):
    with DAG(f"{group.__name__}_in_pods", **KNOWN):
        group(os.environ["SUITE"], os.environ["RUN"], place=PLACE)
