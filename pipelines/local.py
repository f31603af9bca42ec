"""Running a pipeline on this machine through kfp's SubprocessRunner, without Docker."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any


def run_locally(pipeline: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Runs a pipeline in processes of the current environment.

    Args:
        pipeline: A `@dsl.pipeline` function over lightweight components.
        arguments: Its parameters.

    Raises:
        PipelineFailed: A step failed; its log says why.
    """
    from kfp import local

    # A step imports only the part of kfp that runs it: 0.06 s rather than 1.5 s.
    os.environ["_KFP_RUNTIME"] = "true"
    with tempfile.TemporaryDirectory(prefix="orbax-bench-pipeline-") as root:
        local.init(
            runner=local.SubprocessRunner(use_venv=False), pipeline_root=root, raise_on_error=True
        )
        try:
            pipeline(**arguments)
        except RuntimeError as error:
            raise PipelineFailed(str(error)) from None
        finally:
            del os.environ["_KFP_RUNTIME"]


class PipelineFailed(Exception):
    """A step of a pipeline failed."""
