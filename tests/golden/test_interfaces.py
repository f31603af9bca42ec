"""Inputs and outputs of components and pipelines, by which others call them."""

from pathlib import Path

import pytest
import yaml

from tests.golden import support

COMPONENTS = sorted((Path(__file__).parents[2] / "components").glob("*/component.yaml"))
PIPELINES = ("async-study", "calibration", "framework-comparison", "regression", "sweep")


def interface(spec):
    """Returns definitions of inputs or outputs as lines: kind, name, type, default."""
    for kind, found in sorted(spec.items()):
        for name, definition in sorted(found.items()):
            known = {key: value for key, value in definition.items() if key != "description"}
            words = [f"{key}={known[key]!r}" for key in sorted(known)]
            yield f"    {kind} {name}: {', '.join(words)}"


def component(name, spec):
    yield f"component {name}"
    for side in ("inputDefinitions", "outputDefinitions"):
        yield f"  {side.removesuffix('Definitions')}"
        yield from interface(spec.get(side, {}))


def test_components(golden):
    texts = []
    for file in COMPONENTS:
        document = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
        lines = [f"# {document['pipelineInfo']['name']}"]
        for name, spec in document["components"].items():
            lines += component(name, spec)
        texts.append("".join(f"{line}\n" for line in lines))
    golden("interfaces/components.txt", "\n".join(texts))


@pytest.mark.parametrize("target", ["kfp", "vertex"])
@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(golden, name, target):
    pytest.importorskip("kfp")
    text = support.said("pipeline", "compile", "--pipeline", name, "--target", target, "-o", "-")
    document = next(yaml.load_all(text, Loader=yaml.CSafeLoader))
    lines = [f"# {document['pipelineInfo']['name']}", *component("root", document["root"])]
    for part, spec in sorted(document["components"].items()):
        lines += component(part, spec)
    golden(f"interfaces/{name}_{target}.txt", "".join(f"{line}\n" for line in lines))


def test_parameters_of_pipelines(golden):
    golden("interfaces/pipelines.txt", support.said("pipeline", "list"))
