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
    """A parameter of a pipeline."""

    name: str
    default: Any  # which says its type as well
    meaning: str  # a sentence


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
    """A pipeline that has come to its end."""

    directory: str
    arguments: Mapping[str, Any]
    failure: str | None  # why it failed; None when every step succeeded


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One pipeline: what is known of it without importing kfp, and the two functions that do work.

    All of them plan a suite, make the checkpoint that it loads, measure its points in batches and
    put the records together; `add` adds what this one does with them.
    """

    name: str  # on the command line
    summary: str  # one sentence
    details: str = ""  # further sentences, by paragraph
    suite: str = "The suite file, word for word."  # what its suite is
    own: tuple[Parameter, ...] = ()  # besides those of every pipeline
    add: Callable[[Steps], None]  # adds the steps that follow the measurement, on one slice
    conclude: Callable[[Finished, Console], int]  # shows what a run found; returns the exit code
    measuring: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Inputs of run-sweep-point that are neither defaults nor parameters of this name."""
    arms: str | None = None  # of every run; None takes them from a parameter, if there is one
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Defaults of parameters in place of their own."""
    paths: tuple[str, ...] = ()  # parameters that are paths, which every step must reach
    takes_arms: bool = False  # whether it compares the `arms` of a suite
    pairs_saves: bool = False  # whether it compares blocking saves with saves in the background

    @property
    def signature(self) -> tuple[Parameter, ...]:
        """Its parameters; the two that are required have no default."""
        return (
            Parameter("suite", inspect.Parameter.empty, self.suite),
            Parameter("output_directory", inspect.Parameter.empty, _DIRECTORY),
            *(
                each._replace(default=self.defaults.get(each.name, each.default))
                for each in (FIXTURE, POINTS_PER_STEP, *self.own, GO_ON)
            ),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """What can be given by `--set` besides `suite` and `output_directory`, with defaults."""
        return {each.name: each.default for each in self.signature[2:]}

    def build(self, placement: Placement) -> Any:
        """Returns the `@dsl.pipeline`, placed, whose parameters are those above."""
        from kfp import dsl

        def add(*channels: Any) -> None:
            given = dict(zip((each.name for each in self.signature), channels, strict=True))
            add_steps(self, placement, given)

        add.__name__ = add.__qualname__ = self.name.replace("-", "_")
        # kfp reads what a pipeline and its parameters mean from its docstring.
        arguments = ["Args:", *(f"    {each.name}: {each.meaning}" for each in self.signature)]
        add.__doc__ = "\n\n".join(filter(None, [self.summary, self.details, "\n".join(arguments)]))
        add.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(
                    each.name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=each.default,
                    annotation=type(each.default) if each.name in self.parameters else str,
                )
                for each in self.signature
            ]
        )
        return dsl.pipeline(name=f"orbax-bench-{self.name}")(add)
