"""Lineage from Vertex ML Metadata: what Vertex AI Pipelines noted of each artifact."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage import Finding
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_pipelines.targets import Target, require_extras

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import types

_NEAR: Final = 2
"""Hops to the step that made an artifact, and on to what it was made from."""
_SHOWN: Final = {
    "run_id": "run",
    "run_directory": "run directory",
    "suite": "suite",
    "version_orbax-bench": "made by orbax-bench",
}


def vertex_chain(name: str, *, endpoint: str | None = None) -> tuple[Finding, ...]:
    """Returns the chain of an artifact, as Vertex ML Metadata has it.

    The digests are those that the steps noted; nothing is read here, so that nothing is called
    unchanged. The run directory that the metadata names has the rest of the chain, from the records
    on, and is checked by `orbax-bench lineage`.
    """
    require_extras(Target.VERTEX)
    with _explained(name):
        graph, whole = _subgraph(_client(name, endpoint), name)
    artifacts = {artifact.name: artifact for artifact in graph.artifacts}
    if name not in artifacts:
        raise UserError(f"Vertex ML Metadata knows no {name}")
    parents = _parents(graph)
    notes = {} if whole else {"note": "too many artifacts to ask for all; only the nearest"}
    found = list(_findings(artifacts[name], artifacts, parents, ()))
    first = dataclasses.replace(found[0], details={**found[0].details, **notes})
    return first, *found[1:]


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
            (steps.get(event.execution, ""), source) for source in taken.get(event.execution, [""])
        ]
        for event in graph.events
        if event.type_ == types.Event.Type.OUTPUT
    }


def _findings(
    artifact: types.Artifact,
    artifacts: Mapping[str, types.Artifact],
    parents: Mapping[str, list[tuple[str, str]]],
    above: tuple[str, ...],
) -> Iterator[Finding]:
    said = {key: str(value) for key, value in dict(artifact.metadata or {}).items()}
    made = parents.get(artifact.name, [])
    sources = [artifacts[source] for _, source in made if source in artifacts.keys() - above]
    digest = said.get("digest", UNKNOWN)
    roots = [] if sources else list(_roots(said, len(above) + 1))
    yield Finding(
        what=str(said.get("orbax_bench_type") or artifact.schema_title or "artifact"),
        name=_name(artifact),
        depth=len(above),
        recorded="" if digest == UNKNOWN else digest,
        details=_details(said, made),
        inputs=(*map(_name, sources), *(root.name for root in roots)),
    )
    for each in sources:
        yield from _findings(each, artifacts, parents, (*above, artifact.name))
    yield from roots


def _name(artifact: types.Artifact) -> str:
    return str(artifact.uri or artifact.display_name or artifact.name)


def _roots(said: Mapping[str, str], depth: int) -> Iterator[Finding]:
    """Yields where a chain begins: the image and the suite that its first artifact names."""
    image, _, digest = said.get("image", UNKNOWN).partition("@")
    if image != UNKNOWN:
        yield Finding(what="image", name=image, depth=depth, recorded=digest or UNKNOWN)
    if said.get("config_hash", UNKNOWN) != UNKNOWN:
        suite, identity = said.get("suite", UNKNOWN), said["config_hash"]
        yield Finding(what="config", name=suite, depth=depth, recorded=identity)


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
            f"no credentials for Vertex ML Metadata, to read {name}: {error}; run `gcloud auth "
            "application-default login`, or give the run directory"
        ) from None
    except exceptions.GoogleAPIError as error:
        raise UserError(f"Vertex ML Metadata refused {name}: {error}") from None
