"""Components as a container calls them: their committed command, with the input of an executor."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import yaml

COMPONENTS = Path(__file__).parents[2] / "components"
MOST_S = 60.0
"""Seconds until a component has refused what it was given."""


class Ended(NamedTuple):
    """How a container has ended."""

    code: int
    said: list[str]
    text: str
    seconds: float


def executed(name, folder, *, artifacts=None, **inputs):
    """Runs the command of a component.

    Args:
        name: Its folder below `components`.
        folder: Where its outputs are to lie.
        artifacts: The path of each input that is an artifact.
        inputs: The other inputs.
    """
    package = (COMPONENTS / name / "component.yaml").read_text()
    spec = next(iter(yaml.load_all(package, yaml.CSafeLoader)))
    [container] = [one["container"] for one in spec["deploymentSpec"]["executors"].values()]
    [component] = spec["components"].values()
    outputs = component.get("outputDefinitions", {})
    kind = {"schemaTitle": "system.Artifact", "schemaVersion": "0.0.1"}
    given = {
        "inputs": {
            "parameterValues": {"pipeline_run": "run-of-a-test", **inputs},
            "artifacts": {
                key: _artifact(key, kind, path) for key, path in (artifacts or {}).items()
            },
        },
        "outputs": {
            "parameters": {
                key: {"outputFile": str(folder / key)} for key in outputs.get("parameters", {})
            },
            "artifacts": {
                key: _artifact(key, one["artifactType"], folder / key)
                for key, one in outputs.get("artifacts", {}).items()
            },
            "outputFile": str(folder / "executor_output.json"),
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    words = [*container["command"], *container["args"]]
    words = [word.replace("{{$}}", json.dumps(given)) for word in words]
    words[2] = words[2].replace("python3", shlex.quote(sys.executable), 1)
    begun = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith("orbax-bench: error: ")]
    return Ended(done.returncode, said, done.stdout + done.stderr, time.monotonic() - begun)


def _artifact(name, kind, path):
    return {"artifacts": [{"name": name, "type": kind, "uri": str(path), "metadata": {}}]}
