"""Kubeflow pipelines over the components."""
