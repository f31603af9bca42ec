"""`orbax-bench pipeline`: suites as Kubeflow pipelines."""

from orbax_bench_pipelines.cli.commands import app

__all__ = ["app"]
