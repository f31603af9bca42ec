"""Airflow task groups: a sweep over mapped points, and a comparison that ends in a verdict.

Each task is a step of `orbax-bench step`, on the Airflow worker or in a pod. Nothing of Kubeflow is
imported, and JAX only by the steps themselves.
"""

from orbax_bench_airflow.groups import RUN, regression, sweep
from orbax_bench_airflow.places import Kubernetes, Local, Place

__all__ = ["RUN", "Kubernetes", "Local", "Place", "regression", "sweep"]
