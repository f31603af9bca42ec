"""Lineage from Vertex ML Metadata, over the loopback interface."""

import json
import sys

import pytest

pytest.importorskip("kfp")
pytest.importorskip("google.cloud.aiplatform")

from google.cloud.aiplatform_v1 import types
from google.protobuf import json_format

from orbax_bench_core.config import UserError
from orbax_bench_core.lineage import artifact_metadata
from orbax_bench_pipelines.lineage import vertex_chain
from tests.pipelines import fakes

pytestmark = pytest.mark.slow

STORE = "projects/p-1/locations/us-central1/metadataStores/default"
MADE = {
    "verdicts": ("compare-baseline", ["samples"]),
    "samples": ("aggregate", ["records"]),
    "records": ("run-sweep-point", ["checkpoint"]),
    "checkpoint": ("generate-checkpoint", []),
}
DIGESTS = {kind: f"sha256:{kind}" for kind in MADE}


def name_of(kind):
    return f"{STORE}/artifacts/{kind}"


def artifact(kind, **changes):
    """What Vertex AI Pipelines notes of an artifact of ours."""
    keys = {"samples": "samples.parquet", "checkpoint": "checkpoint:gs://b/c"}
    inputs = {keys.get(each, each): DIGESTS[each] for each in MADE[kind][1]}
    metadata = artifact_metadata(kind, digest=DIGESTS[kind], inputs=inputs)
    return {
        "name": name_of(kind),
        "uri": f"gs://b/root/{kind}",
        "schemaTitle": "system.Dataset",
        "metadata": {**metadata, "image": "place/orbax-bench:0.1.0", **changes},
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
    return graph(
        artifact("verdicts"),
        artifact("samples", **of_samples),
        artifact("records"),
        artifact("checkpoint"),
    )


def test_a_verdict_leads_to_samples_records_checkpoint_and_image(chain_from):
    chain = chain_from(whole())
    assert [link.what for link in chain.all_links()] == [*MADE, "image"]
    assert [link.details.get("step") for link in chain.all_links()][:3] == [
        "compare-baseline",
        "aggregate",
        "run-sweep-point",
    ]
    assert not chain.broken


def test_what_the_next_step_noted_too_is_not_called_unchanged(chain_from):
    status = {link.what: link.status for link in chain_from(whole()).all_links()}
    assert status["samples"] == status["checkpoint"] == "unknown"


def test_samples_that_the_verdict_was_not_made_from_have_changed(chain_from):
    chain = chain_from(whole(digest="sha256:others"))
    assert chain.broken
    assert chain.made_from[0].status == "changed"


def test_many_records_become_one_link(chain_from):
    body = whole()
    for index in range(30):
        copy = {**artifact("records"), "name": f"{STORE}/artifacts/records-{index}"}
        body["artifacts"].append(copy)
        execution = f"{STORE}/executions/aggregate"
        body["events"].append({"artifact": copy["name"], "execution": execution, "type": "INPUT"})
    samples = chain_from(body).made_from[0]
    assert [link.name for link in samples.made_from] == ["31 artifacts"]


def test_a_graph_that_is_too_large_is_asked_for_what_is_near(chain_from):
    chain = chain_from(graph(artifact("verdicts"), artifact("samples")), limited=True)
    assert "only the nearest" in chain.details["note"]
    assert [link.what for link in chain.made_from] == ["samples"]


def test_an_artifact_that_is_not_there_is_one_message():
    with FakeMetadata(whole()).serving() as server:
        name = f"{STORE}/artifacts/other"
        with pytest.raises(UserError, match=r"refused .*artifacts/other: 404"):
            vertex_chain(name, endpoint=server.url)


def test_without_credentials_the_message_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(UserError, match="gcloud auth application-default login"):
        vertex_chain(name_of("verdicts"))


def test_the_command_shows_it(monkeypatch, capsys):
    from orbax_bench_core.cli.main import main

    class Installed:
        def load(self):
            return vertex_chain

    monkeypatch.setattr("orbax_bench_core.lineage.find._vertex", Installed)
    with FakeMetadata(whole()).serving() as server:
        command = ["lineage", name_of("verdicts"), "--endpoint", server.url, "--json"]
        monkeypatch.setattr(sys, "argv", ["orbax-bench", *command])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    assert json.loads(capsys.readouterr().out)["chain"]["name"] == "gs://b/root/verdicts"
