"""The pipelines by name: what is known of each without importing kfp."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from orbax_bench_core.config import UserError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from orbax_bench_pipelines.placement import Placement


@dataclasses.dataclass(frozen=True)
class Finished:
    """A pipeline that has come to its end.

    Attributes:
        directory: Its output directory.
        arguments: The parameters it ran with.
        failure: Why it failed; None when every step succeeded.
    """

    directory: str
    arguments: Mapping[str, Any]
    failure: str | None


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """One pipeline.

    Its package `orbax_bench_pipelines.<module>` has two functions. `build(placement)` in `pipeline`
    returns the `@dsl.pipeline`, whose parameters include `suite` and `output_directory`.
    `conclude(finished, console)` in `conclude` shows what a run found and returns the exit code.

    Attributes:
        name: What the command line calls it.
        summary: One sentence.
        parameters: What can be given by `--set` besides `suite` and `output_directory`, each with
            its default.
        paths: Which parameters are paths that every step must reach.
        takes_arms: Whether it compares the `arms` of a suite.
        pairs_saves: Whether it compares blocking saves with saves in the background.
    """

    name: str
    summary: str
    parameters: Mapping[str, Any]
    paths: tuple[str, ...] = ()
    takes_arms: bool = False
    pairs_saves: bool = False

    @property
    def module(self) -> str:
        """Name of its package below `orbax_bench_pipelines`."""
        return self.name.replace("-", "_")

    def build(self, placement: Placement) -> Any:
        """Returns the pipeline for kfp, placed.

        Args:
            placement: Where its steps run.
        """
        build: Callable[[Placement], Any] = self._part("pipeline").build
        return build(placement)

    def conclude(self, finished: Finished, console: Console) -> int:
        """Shows what a run found and returns the exit code of the command.

        Args:
            finished: The run.
            console: Where to show it.
        """
        conclude: Callable[[Finished, Console], int] = self._part("conclude").conclude
        return conclude(finished, console)

    def _part(self, name: str) -> Any:
        return importlib.import_module(f"orbax_bench_pipelines.{self.module}.{name}")


PIPELINES = (
    Pipeline(
        name="sweep",
        summary="Measures every point of a suite, each in a step of its own.",
        parameters={
            "fixture": "",
            "baseline": "",
            "remove_repeated_dir": False,
            "enable_hlo_dump": False,
            "measure_limits": True,
            "lock": True,
        },
        paths=("baseline",),
    ),
    Pipeline(
        name="regression",
        summary="Compares a candidate with a baseline and fails on a regression.",
        parameters={
            "arms": "",
            "fixture": "",
            "baseline": "",
            "registry": "",
            "promote": False,
            "allow_inconclusive": True,
            "remove_repeated_dir": True,
            "lock": True,
        },
        paths=("baseline", "registry"),
        takes_arms=True,
    ),
    Pipeline(
        name="framework-comparison",
        summary="Says how many times as long one framework takes as another for the same bytes.",
        parameters={"arms": "", "fixture": "", "remove_repeated_dir": True},
        takes_arms=True,
    ),
    Pipeline(
        name="async-study",
        summary="Says what saving in the background saves, by the size of the model.",
        parameters={"fixture": "", "remove_repeated_dir": True},
        pairs_saves=True,
    ),
    Pipeline(
        name="calibration",
        summary="Compares a suite with itself: false alarms of the gate, and noise of the place.",
        parameters={"fixture": "", "earlier": "", "passport": "", "remove_repeated_dir": True},
        paths=("earlier", "passport"),
    ),
)


def find_pipeline(name: str) -> Pipeline:
    """Returns a pipeline by name.

    Args:
        name: Such as `sweep`.

    Raises:
        UserError: There is none of that name.
    """
    for pipeline in PIPELINES:
        if pipeline.name == name:
            return pipeline
    known = [each.name for each in PIPELINES]
    raise UserError(f"unknown pipeline {name!r}; {did_you_mean(name, known)}")
