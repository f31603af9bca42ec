"""Lineage from Vertex ML Metadata: what Vertex AI Pipelines noted of each artifact."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.config import UserError
from orbax_bench_core.lineage import Link, Status
from orbax_bench_core.records import UNKNOWN
from orbax_bench_pipelines.targets import Target, require_extras

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import types

_LISTED: Final = 20
"""More artifacts of one type than this, such as the records of a large sweep, become one link."""
_NEAR: Final = 2
"""Hops to the step that made an artifact, and on to what it was made from."""
_NOTED_ALIKE: Final = "noted alike by both steps; contents not read"
_SHOWN: Final = {
    "run_id": "run",
    "run_directory": "run directory",
    "config_hash": "config",
    "point_count": "points",
    "version_orbax-bench": "made by orbax-bench",
}


def vertex_chain(name: str, *, endpoint: str | None = None) -> Link:
    """Returns the chain of an artifact, as Vertex ML Metadata has it.

    The digests are those that the steps noted; nothing is read here, so that an artifact whose
    digest was noted alike twice is `unknown`, never `unchanged`. The run directory that its
    metadata names can be checked against storage.

    Args:
        name: `projects/P/locations/L/metadataStores/default/artifacts/ID`.
        endpoint: Another address than that of the location; http:// for a server on this machine.

    Raises:
        UserError: A package or credentials are missing, or the service refused.
    """
    require_extras(Target.VERTEX)
    with _explained(name):
        graph, whole = _subgraph(_client(name, endpoint), name)
    artifacts = {artifact.name: artifact for artifact in graph.artifacts}
    if name not in artifacts:
        raise UserError(f"Vertex ML Metadata knows no {name}")
    parents = _parents(graph)
    notes = {} if whole else {"note": "too many artifacts to ask for all; only the nearest"}
    return _link(artifacts[name], artifacts, parents, {}, frozenset(), notes)


def _client(name: str, endpoint: str | None) -> Any:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.aiplatform_v1 import MetadataServiceClient

    plain = endpoint is not None and endpoint.startswith("http://")
    return MetadataServiceClient(
        credentials=AnonymousCredentials() if plain else None,
        transport="rest",
        client_options={
            "api_endpoint": endpoint or f"{name.split('/')[3]}-aiplatform.googleapis.com"
        },
    )


def _subgraph(client: Any, name: str) -> tuple[types.LineageSubgraph, bool]:
    """Returns the graph around an artifact, and whether it is all of it: 1000 edges at most."""
    from google.api_core import exceptions

    try:
        return client.query_artifact_lineage_subgraph({"artifact": name}), True
    except exceptions.BadRequest:  # over REST a failed precondition has no class of its own
        near = {"artifact": name, "max_hops": _NEAR}
        return client.query_artifact_lineage_subgraph(near), False


def _parents(graph: types.LineageSubgraph) -> dict[str, list[tuple[str, str]]]:
    """Returns the step and the artifact of each thing that an artifact was made from."""
    from google.cloud.aiplatform_v1 import types

    steps = {execution.name: execution.display_name for execution in graph.executions}
    taken: dict[str, list[str]] = {}
    for event in graph.events:
        if event.type_ == types.Event.Type.INPUT:
            taken.setdefault(event.execution, []).append(event.artifact)
    return {
        event.artifact: [
            (steps.get(event.execution, ""), source) for source in taken.get(event.execution, [])
        ]
        for event in graph.events
        if event.type_ == types.Event.Type.OUTPUT
    }


def _link(
    artifact: types.Artifact,
    artifacts: Mapping[str, types.Artifact],
    parents: Mapping[str, list[tuple[str, str]]],
    expected: Mapping[str, str],
    above: frozenset[str],
    notes: Mapping[str, str],
) -> Link:
    said = {key: str(value) for key, value in dict(artifact.metadata or {}).items()}
    sources = [
        artifacts[source]
        for _, source in parents.get(artifact.name, [])
        if source in artifacts and source not in above
    ]
    inputs = _inputs(said)
    many = {kind for kind, count in Counter(map(_kind, sources)).items() if count > _LISTED}
    digest, recorded = said.get("digest", UNKNOWN), _expected(said, expected)
    return Link(
        what=_kind(artifact),
        name=artifact.uri or artifact.display_name or artifact.name,
        status=_status(recorded, digest),
        digest="" if digest == UNKNOWN else digest,
        recorded=recorded,
        compared=_NOTED_ALIKE if _status(recorded, digest) == "unknown" else "",
        details={**_details(said, parents.get(artifact.name, [])), **notes},
        made_from=(
            *(
                _link(each, artifacts, parents, inputs, above | {artifact.name}, {})
                for each in sources
                if _kind(each) not in many
            ),
            *(_many(kind, sources) for kind in sorted(many)),
            *([] if sources else _roots(said)),
        ),
    )


def _many(kind: str, sources: Iterable[types.Artifact]) -> Link:
    count = sum(_kind(each) == kind for each in sources)
    return Link(what=kind, name=f"{count} artifacts", status="not checked")


def _roots(said: Mapping[str, str]) -> Iterator[Link]:
    """Yields where a chain begins: the image and the suite that its first artifact names."""
    for what, name, digest in (
        ("image", "image", "image_digest"),
        ("config", "config_hash", "config_hash"),
    ):
        if said.get(name, UNKNOWN) != UNKNOWN:
            yield Link(
                what=what, name=said[name], status="not checked", recorded=said.get(digest, UNKNOWN)
            )


def _kind(artifact: types.Artifact) -> str:
    metadata = dict(artifact.metadata or {})
    return str(metadata.get("orbax_bench_type") or artifact.schema_title or "artifact")


def _inputs(said: Mapping[str, str]) -> dict[str, str]:
    try:
        found = json.loads(said.get("inputs", ""))
    except ValueError:
        return {}
    return {str(name): str(digest) for name, digest in found.items()}


def _expected(said: Mapping[str, str], inputs: Mapping[str, str]) -> str:
    """Returns the digest that the next thing noted of this one: `samples.parquet` of samples."""
    kind = said.get("orbax_bench_type", "")
    if kind == "records":  # what is put together notes one digest over all of them
        return UNKNOWN
    found = (d for name, d in inputs.items() if kind and name.split(".")[0].split(":")[0] == kind)
    return next(found, UNKNOWN)


def _status(recorded: str, digest: str) -> Status:
    if UNKNOWN in (recorded, digest):
        return "not checked"
    return "unknown" if recorded == digest else "changed"


def _details(said: Mapping[str, str], made: Iterable[tuple[str, str]]) -> dict[str, str]:
    steps = dict.fromkeys(step for step, _ in made if step)
    found = {"step": ", ".join(steps)} if steps else {}
    return {
        **found,
        **{title: said[key] for key, title in _SHOWN.items() if said.get(key, UNKNOWN) != UNKNOWN},
    }


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    import google.auth.exceptions
    from google.api_core import exceptions

    try:
        yield
    except google.auth.exceptions.GoogleAuthError as error:
        raise UserError(
            f"no credentials to ask Vertex ML Metadata for {name}: {error}; run `gcloud auth "
            "application-default login`, or give the run directory"
        ) from None
    except exceptions.GoogleAPIError as error:
        raise UserError(f"Vertex ML Metadata refused {name}: {error}") from None
