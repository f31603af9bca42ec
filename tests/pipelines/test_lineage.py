"""Lineage from Vertex ML Metadata, over the loopback interface."""

import json

import pytest

pytest.importorskip("kfp")
pytest.importorskip("google.cloud.aiplatform")

from google.cloud.aiplatform_v1 import types
from google.protobuf import json_format

from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage import artifact_metadata
from orbax_bench_pipelines.lineage import vertex_chain
from tests.pipelines import fakes

pytestmark = pytest.mark.slow

STORE = "projects/p-1/locations/us-central1/metadataStores/default"
MADE = {
    "verdicts": ("compare-baseline", ["samples"]),
    "samples": ("aggregate", []),
}
OF_RUN = {"run_directory": "gs://b/out", "image": "place/orbax-bench@sha256:0"}
DIGESTS = {kind: f"sha256:{kind}" for kind in MADE}


def name_of(kind):
    return f"{STORE}/artifacts/{kind}"


def artifact(kind, **changes):
    """What Vertex AI Pipelines notes of an artifact of ours."""
    metadata = artifact_metadata(kind, digest=DIGESTS[kind])
    return {
        "name": name_of(kind),
        "uri": f"gs://b/root/{kind}",
        "schemaTitle": "system.Dataset",
        "metadata": {**metadata, **OF_RUN, **changes},
    }


def graph(*artifacts):
    """A lineage subgraph, in the words of the API and refused where the API has none such."""
    events = []
    for kind, (step, inputs) in MADE.items():
        execution = f"{STORE}/executions/{step}"
        events.append({"artifact": name_of(kind), "execution": execution, "type": "OUTPUT"})
        events += [
            {"artifact": name_of(each), "execution": execution, "type": "INPUT"} for each in inputs
        ]
    body = {
        "artifacts": list(artifacts),
        "executions": [
            {"name": f"{STORE}/executions/{step}", "displayName": step} for step, _ in MADE.values()
        ],
        "events": events,
    }
    json_format.ParseDict(body, types.LineageSubgraph()._pb, ignore_unknown_fields=False)
    return body


class FakeMetadata(fakes.FakeServer):
    """Answers for one artifact; with `limited` only when it is asked for what is near."""

    def __init__(self, body, *, limited=False):
        super().__init__()
        self.body = body
        self.limited = limited

    def answer(self, received):
        if not received.path.endswith(f"{name_of('verdicts')}:queryArtifactLineageSubgraph"):
            return fakes.NOT_FOUND
        if self.limited and "maxHops" not in received.query:
            error = {"code": 400, "message": "too many", "status": "FAILED_PRECONDITION"}
            return 400, {"error": error}
        return 200, self.body


@pytest.fixture
def chain_from():
    """Serves a graph, and returns the chain of its verdicts."""

    def ask(body, **how):
        with FakeMetadata(body, **how).serving() as server:
            return vertex_chain(name_of("verdicts"), endpoint=server.url)

    return ask


def whole(**of_samples):
    return graph(artifact("verdicts"), artifact("samples", **of_samples))


def test_a_verdict_leads_to_its_samples_and_names_the_directory_with_the_rest(chain_from):
    chain = chain_from(whole())
    assert [found.what for found in chain] == [*MADE, "image"]
    assert [found.depth for found in chain] == list(range(len(chain)))
    assert [found.details.get("step") for found in chain][:2] == ["compare-baseline", "aggregate"]
    samples = chain[1]
    assert samples.details["run directory"] == "gs://b/out"
    assert (samples.recorded, samples.status) == ("sha256:samples", "not checked")
    assert chain[2].recorded == "sha256:0"


def test_a_graph_that_is_too_large_is_asked_for_what_is_near(chain_from):
    chain = chain_from(graph(artifact("verdicts"), artifact("samples")), limited=True)
    assert "only the nearest" in chain[0].details["note"]
    assert [found.what for found in chain] == ["verdicts", "samples", "image"]


def test_an_artifact_that_is_not_there_is_one_message():
    with FakeMetadata(whole()).serving() as server:
        name = f"{STORE}/artifacts/other"
        with pytest.raises(UserError, match=r"refused .*artifacts/other: 404"):
            vertex_chain(name, endpoint=server.url)


def test_without_credentials_the_message_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(UserError, match="gcloud auth application-default login"):
        vertex_chain(name_of("verdicts"))


def test_the_command_shows_it(monkeypatch, orbax_bench):
    class Installed:
        def load(self):
            return vertex_chain

    monkeypatch.setattr("orbax_bench_core.lineage.find._vertex", Installed)
    with FakeMetadata(whole()).serving() as server:
        done = orbax_bench("lineage", name_of("verdicts"), "--endpoint", server.url, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["findings"][0]["name"] == "gs://b/root/verdicts"
