"""Kubeflow Pipelines components, each a thin call into `orbax_bench_core`."""
