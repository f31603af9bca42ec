"""Artifacts that point at what lies elsewhere, and copy nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

_ON_KUBEFLOW: Final = "KFP_POD_NAME"
"""Set in every step by Kubeflow Pipelines, and by nobody else."""


def point_at(artifact: Any, place: str) -> None:
    """Has an artifact stand for a file or folder where it lies.

    Vertex AI and the local runners take any URI. Kubeflow's launcher fails a step whose artifact
    lies in an object store but not below the pipeline root, and would download all of it in each
    step that takes it; there the artifact is a text file that names the place. Either way its
    metadata has it as `path`.

    Args:
        artifact: An output artifact of a Kubeflow component.
        place: A local path or a URI.

    Raises:
        OSError: The text file cannot be written.
    """
    artifact.metadata["path"] = place
    if _ON_KUBEFLOW in os.environ and "://" in place:
        Path(artifact.path).write_text(place)
    else:
        artifact.uri = place
