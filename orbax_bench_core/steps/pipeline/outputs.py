"""Outputs of a pipeline step: where they lie, and what is known of them."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from etils import epath

from orbax_bench_core.lineage import output_metadata, point_at
from orbax_bench_core.records import RunDirectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class Output:
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
    ) -> Output:
        """Returns the output that is a file of a run directory.

        Args:
            run: The run directory.
            name: The file, as `lineage.json` calls it.
            kind: What the output is.
            more: Further metadata.

        Raises:
            UserError: There is no run here.
        """
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
    named: Mapping[str, Output] = dataclasses.field(default_factory=dict)

    def into(self, **artifacts: Any) -> Value:
        """Hands the outputs over as artifacts of Kubeflow: content, pointer and metadata.

        Args:
            artifacts: The artifact of each output, by its name.

        Returns:
            The value.

        Raises:
            OSError: A file cannot be read or written.
        """
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


def _copy(place: str, path: str) -> None:
    with epath.Path(place).open("rb") as source, Path(path).open("wb") as target:
        shutil.copyfileobj(source, target)
