"""Type of a pipeline, and the one builder of all of them."""

# No postponed annotations in this package: kfp reads types from signatures.
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rich.console import Console

from orbax_bench_pipelines.definitions.steps import Steps, add_steps
from orbax_bench_pipelines.targets import Placement


class Parameter(NamedTuple):
    """A parameter of a pipeline.

    Attributes:
        name: Its name.
        default: Its default, which says its type as well.
        meaning: A sentence.
    """

    name: str
    default: Any
    meaning: str


FIXTURE = Parameter(
    "fixture", "", "A suite file to generate the checkpoint from that load-only points read."
)
POINTS_PER_STEP = Parameter(
    "points_per_step", 0, "Points that one step measures; 0 for as many as take minutes."
)
KEEP_DATA = Parameter("keep_data", False, "Whether the checkpoint data of each repeat stays.")
GO_ON = Parameter(
    "go_on",
    False,
    "Whether to continue a run that an earlier submission began in the output directory; "
    "otherwise it is refused, so that its results are not mistaken for new ones.",
)
LOCK = Parameter(
    "lock", True, "Whether a step waits until no other orbax-bench measures on its machine."
)
_DIRECTORY = "The run directory, local or gs://, reachable from every step."


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One pipeline: what is known of it without importing kfp, and the two functions that do work.

    All of them plan a suite, make the checkpoint that it loads, measure its points in batches and
    put the records together; `add` adds what this one does with them.

    Attributes:
        name: Its name on the command line.
        summary: One sentence.
        details: Further sentences, by paragraph.
        suite: What its suite is.
        own: Its parameters besides `suite`, `output_directory` and those of every pipeline.
        add: Adds the steps that follow the measurement, on one slice.
        conclude: Shows what a run found, and returns the exit code of the command.
        measuring: Inputs of run-sweep-point that are neither defaults nor parameters of this name.
        arms: The arms of every run; None takes them from a parameter, if there is one.
        defaults: Defaults of parameters in place of their own.
        paths: Parameters that are paths, which every step must reach.
        takes_arms: Whether it compares the `arms` of a suite.
        pairs_saves: Whether it compares blocking saves with saves in the background.
    """

    name: str
    summary: str
    details: str = ""
    suite: str = "The suite file, word for word."
    own: tuple[Parameter, ...] = ()
    add: Callable[[Steps], None]
    conclude: Callable[[Finished, Console], int]
    measuring: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    arms: str | None = None
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    paths: tuple[str, ...] = ()
    takes_arms: bool = False
    pairs_saves: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """What can be given by `--set` besides `suite` and `output_directory`, with defaults."""
        return {parameter.name: parameter.default for parameter in self._optional}

    @property
    def _optional(self) -> tuple[Parameter, ...]:
        return tuple(
            each._replace(default=self.defaults.get(each.name, each.default))
            for each in (FIXTURE, POINTS_PER_STEP, *self.own, GO_ON)
        )

    def by_default(self, given: Mapping[str, Any]) -> "Pipeline":
        """Returns this pipeline with other defaults of its parameters."""
        return dataclasses.replace(self, defaults=given)

    def build(self, placement: Placement) -> Any:
        """Returns the `@dsl.pipeline`, placed, whose parameters are those above."""
        from kfp import dsl

        required = (
            Parameter("suite", inspect.Parameter.empty, self.suite),
            Parameter("output_directory", inspect.Parameter.empty, _DIRECTORY),
        )
        parameters = (*required, *self._optional)

        def add(*channels: Any) -> None:
            given = dict(zip((each.name for each in parameters), channels, strict=True))
            add_steps(self, placement, given)

        add.__name__ = add.__qualname__ = self.name.replace("-", "_")
        add.__doc__ = _docs(self.summary, self.details, parameters)
        add.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(
                    each.name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=each.default,
                    annotation=str if each in required else type(each.default),
                )
                for each in parameters
            ]
        )
        return dsl.pipeline(name=f"orbax-bench-{self.name}")(add)


def _docs(summary: str, details: str, parameters: tuple[Parameter, ...]) -> str:
    """Returns the docstring that kfp reads what a pipeline and its parameters mean from."""
    arguments = ["Args:", *(f"    {each.name}: {each.meaning}" for each in parameters)]
    return "\n\n".join(filter(None, [summary, details, "\n".join(arguments)]))
