"""Outputs of a step of a pipeline: files and numbers, and what is known of each."""

import dataclasses
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import pydantic
from etils import epath

from orbax_bench_core import pages
from orbax_bench_core.answers import Answer
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import write_atomically
from orbax_bench_core.lineage import artifact_metadata, file_digest, output_metadata, point_at
from orbax_bench_core.records import RunDirectory

Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepOutput:
    """One output: what is known of it, and where it lies."""

    metadata: Mapping[str, str | float]  # of metrics numbers, and the verdict as text
    place: str | None = None  # a local path or URI; None if the metadata is all there is
    copied: bool = False  # whether an engine that keeps files gets its bytes, not a pointer
    content: bytes = b""  # what an engine that keeps files gets, where it is no file

    @classmethod
    def of_run(
        cls, run: RunDirectory, name: str, kind: str, *, more: Mapping[str, str] | None = None
    ) -> Self:
        """Returns the output that is a file of a run directory.

        Args:
            run: The run directory.
            name: Path of the file in it.
            kind: What the artifact holds, by which engines find it.
            more: Further metadata; they replace what is known by the same key.
        """
        metadata = output_metadata(run, name, kind) | dict(more or {})
        return cls(metadata=metadata, place=str(run.root / name), copied=True)

    @classmethod
    def of_file(
        cls,
        kind: str,
        place: str,
        run: RunDirectory | None = None,
        *,
        more: Mapping[str, str] | None = None,
    ) -> Self:
        """Returns the output that is a file; `more` of what is known of it, such as its `path`.

        Args:
            kind: What the artifact holds, by which engines find it.
            place: The file, local or in a bucket; it must exist, for its digest is taken.
            run: The run that it belongs to, if any.
            more: Further metadata; they replace what is known by the same key.

        Raises:
            OSError: The file cannot be read.
        """
        known = artifact_metadata(kind, run, digest=file_digest(place), path=place)
        return cls(metadata=known | dict(more or {}), place=place, copied=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outputs(Generic[Value]):
    """All outputs of a step: what it returns, as JSON has it, and its outputs by name."""

    value: Value
    named: Mapping[str, StepOutput] = dataclasses.field(default_factory=dict)

    def into(self, **artifacts: Any) -> Value:
        """Hands the outputs over as artifacts of Kubeflow: content, pointer and metadata.

        Args:
            **artifacts: An artifact of Kubeflow by the name of each output; each must be given.

        Returns:
            The value of the step.

        Raises:
            KeyError: An output has no artifact of its name.
            OSError: A file cannot be copied.
        """
        for name, output in self.named.items():
            artifact = artifacts[name]
            artifact.metadata.update(output.metadata)
            if output.content:
                Path(artifact.path).write_bytes(output.content)
            if output.place is None:
                continue
            if not output.copied:
                point_at(artifact, output.place)
            elif output.place != artifact.path:
                with (
                    epath.Path(output.place).open("rb") as source,
                    Path(artifact.path).open("wb") as target,
                ):
                    shutil.copyfileobj(source, target)
        return self.value


def write_answer(
    kind: str,
    document: pages.Document,
    numbers: pydantic.BaseModel | Any,
    places: tuple[str, str, str],
    run: RunDirectory | None = None,
) -> dict[str, StepOutput]:
    """Writes an answer to files, and returns each as an output.

    `places` are those of its data, of its Markdown and of its page; one that is empty is left out.

    Returns:
        The outputs `answer`, `summary` and `report`, without those whose place is empty.

    Raises:
        UserError: A file cannot be written.
    """
    as_markdown, as_page = pages.to_markdown(document), pages.to_html(document)
    as_json = (
        numbers.model_dump_json(indent=1)
        if isinstance(numbers, pydantic.BaseModel)
        else json.dumps(numbers, indent=1)
    )
    contents = (
        ("answer", kind, as_json),
        ("summary", f"{kind}-summary", as_markdown),
        ("report", f"{kind}-report", as_page),
    )
    named = {}
    for place, (name, what, content) in zip(places, contents, strict=True):
        if not place:
            continue
        try:
            write_atomically(place, content.encode())
        except OSError as error:
            raise UserError(f"{name}: cannot write {place}: {error}") from None
        named[name] = StepOutput.of_file(what, place, run)
    return named


def conclusion(
    run: RunDirectory, answer: Answer[Any], kind: str = "", *, data: str = "answer", **more: str
) -> dict[str, StepOutput]:
    """Returns the files of an answer that was written into a run directory.

    `data` is the output that has its data, and `kind` what they are called; by default its name.
    """
    kind = kind or answer.name
    kinds = (
        (data, answer.file, kind),
        ("summary", f"{answer.name}.md", f"{kind}-summary"),
        ("report", answer.page, f"{kind}-report"),
    )
    return {output: StepOutput.of_run(run, path, what, more=more) for output, path, what in kinds}
