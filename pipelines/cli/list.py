"""`orbax-bench pipeline list`: the pipelines and their parameters."""

from __future__ import annotations


def list_pipelines() -> None:
    """List the pipelines and their parameters, with defaults."""
    import json

    from orbax_bench_pipelines.registry import PIPELINES

    for pipeline in PIPELINES:
        print(f"{pipeline.name}: {pipeline.summary}")
        for name, default in pipeline.parameters.items():
            print(f"  {name}={json.dumps(default)}")
