"""Outputs of a pipeline step: where they lie, and what is known of them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import pydantic
from etils import epath

from orbax_bench_core.document import Document, to_html, to_markdown
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import write_atomically
from orbax_bench_core.lineage import artifact_metadata, file_digest, output_metadata, point_at
from orbax_bench_core.records import RunDirectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepOutput:
    """One output.

    Attributes:
        metadata: What is known of it; numbers only where its content is numbers.
        place: The file or folder where it lies, a local path or URI; None for one whose metadata is
            all there is.
        copied: Whether an engine that keeps files gets its bytes, rather than a pointer.
    """

    metadata: Mapping[str, str | float]
    place: str | None = None
    copied: bool = False

    @classmethod
    def of_run(
        cls,
        run: RunDirectory,
        name: str,
        kind: str,
        *,
        more: Mapping[str, str] | None = None,
    ) -> StepOutput:
        """Returns the output that is a file of a run directory."""
        metadata = output_metadata(run, name, kind) | dict(more or {})
        return cls(metadata=metadata, place=str(run.root / name), copied=True)


Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outputs(Generic[Value]):
    """All outputs of a step.

    Attributes:
        value: What it returns, as JSON has it; None for nothing.
        named: Its outputs by name.
    """

    value: Value
    named: Mapping[str, StepOutput] = dataclasses.field(default_factory=dict)

    def into(self, **artifacts: Any) -> Value:
        """Hands the outputs over as artifacts of Kubeflow: content, pointer and metadata."""
        for name, output in self.named.items():
            artifact = artifacts[name]
            artifact.metadata.update(output.metadata)
            if output.place is None:
                continue
            if not output.copied:
                point_at(artifact, output.place)
            elif output.place != artifact.path:
                _copy(output.place, artifact.path)
        return self.value


def write_answer(
    kind: str,
    document: Document,
    numbers: pydantic.BaseModel | Any,
    *,
    answer: str,
    summary: str,
    report: str,
    run: RunDirectory | None = None,
) -> dict[str, StepOutput]:
    """Writes an answer to files, and returns each as an output."""
    as_json = (
        numbers.model_dump_json(indent=1)
        if isinstance(numbers, pydantic.BaseModel)
        else json.dumps(numbers, indent=1)
    )
    contents = (
        ("answer", answer, kind, as_json),
        ("summary", summary, f"{kind}-summary", to_markdown(document)),
        ("report", report, f"{kind}-report", to_html(document)),
    )
    named = {}
    for name, place, what, content in contents:
        if not place:
            continue
        try:
            write_atomically(epath.Path(place), content.encode())
        except OSError as error:
            raise UserError(f"{name}: cannot write {place}: {error}") from None
        metadata = artifact_metadata(what, run, digest=file_digest(place), path=place)
        named[name] = StepOutput(metadata=metadata, place=place, copied=True)
    return named


def conclusion(run: RunDirectory, file: str, **more: str) -> dict[str, StepOutput]:
    """Returns the files of a conclusion that was written into a run directory."""
    name = file.removesuffix(".json")
    kinds = (
        ("answer", file, name),
        ("summary", f"{name}.md", f"{name}-summary"),
        ("report", f"{name}.html", f"{name}-report"),
    )
    return {output: StepOutput.of_run(run, path, kind, more=more) for output, path, kind in kinds}


def _copy(place: str, path: str) -> None:
    with epath.Path(place).open("rb") as source, Path(path).open("wb") as target:
        shutil.copyfileobj(source, target)
