"""Parses packages and request bodies into the services' own protos; unknown fields are errors."""

from google.protobuf import json_format
from kfp.kubernetes.kubernetes_executor_config_pb2 import KubernetesExecutorConfig
from kfp.pipeline_spec import pipeline_spec_pb2


def pipeline_spec(document):
    """Parses a PipelineSpec, and within it what it holds as a free-form struct."""
    spec = json_format.ParseDict(document, pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(
        json_format.MessageToDict(spec.deployment_spec),
        pipeline_spec_pb2.PipelineDeploymentConfig(),
    )
    return spec


def platform_spec(document):
    """Parses a PlatformSpec; returns the Kubernetes configuration of each executor."""
    spec = json_format.ParseDict(document, pipeline_spec_pb2.PlatformSpec())
    executors = spec.platforms["kubernetes"].deployment_spec.executors
    return {
        name: json_format.ParseDict(json_format.MessageToDict(config), KubernetesExecutorConfig())
        for name, config in executors.items()
    }
