"""The container image that every component runs in."""

from __future__ import annotations

import importlib.metadata
import os
from typing import Final

_VERSION: Final = importlib.metadata.version("orbax-bench")
IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", f"orbax-bench:{_VERSION}")
"""Taken from `ORBAX_BENCH_IMAGE` when components are compiled; by default the local tag of this
version. The images have no ENTRYPOINT and hold kfp, so that nothing is installed at run time."""
RELEASED: Final = f"ghcr.io/kubeflow/pipelines-components-orbax-bench:v{_VERSION}"
"""The name of the image where kubeflow/pipelines-components publishes the images of its components;
the `component.yaml` files next to the sources have it."""
