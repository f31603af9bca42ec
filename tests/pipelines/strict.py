"""Parses packages and request bodies into the services' own protos; unknown fields are errors."""

import json

import yaml
from google.protobuf import json_format
from kfp.kubernetes.kubernetes_executor_config_pb2 import KubernetesExecutorConfig
from kfp.pipeline_spec import pipeline_spec_pb2

from orbax_bench_pipelines.compile import compiled
from orbax_bench_pipelines.definitions import find_pipeline
from orbax_bench_pipelines.targets import Placement, Settings

_compiled = {}


def documents(target, name="sweep", folder_per_run=False, **settings):
    """Compiles a pipeline with some settings, once; returns the documents of its package."""
    placement = Placement(target, Settings.model_validate(settings), folder_per_run)
    key = (name, repr(placement))
    if key not in _compiled:
        _compiled[key] = read(compiled(find_pipeline(name), placement))
    return _compiled[key]


def read(package):
    return list(yaml.load_all(package, Loader=yaml.CSafeLoader))


def tasks(spec):
    """Returns name and body of every task, with loops and conditions opened."""
    dags = [spec["root"]["dag"], *(c["dag"] for c in spec["components"].values() if "dag" in c)]
    return [task for dag in dags for task in dag["tasks"].items()]


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


def as_model(api, body, kind):
    """Reads a body into a model of an API's own client, and back: nothing may get lost."""

    class Response:
        data = json.dumps(body)

    model = api.deserialize(Response, kind)
    assert api.sanitize_for_serialization(model) == body
    return model
