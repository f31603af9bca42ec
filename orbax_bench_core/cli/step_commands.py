"""Commands of `step`, made from the steps of a pipeline.

A command is made from the signature and the docstring of its step in
`orbax_bench_core.engine`; here stands what is different on a command line.
"""

import dataclasses
import inspect
import json
import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

import docstring_parser
import typer

from orbax_bench_core import engine
from orbax_bench_core.cli import arguments
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.exit_codes import REGRESSED, Exit
from orbax_bench_core.files import place, read_at_most
from orbax_bench_core.publishing import Notifiers

app = typer.Typer(rich_markup_mode=None)

_NO_OPTION: Final = ("file", "in_log", "noted", "notifiers", "pipeline_run", "slice_names")
"""Parameters that Kubeflow gives, or that follow from others."""
_FLAGS: Final = {"launcher_settings": "--set", "limit_mib": "--limit"}
_METAVARS: Final = {"expect": "PLATFORM[:KIND][:COUNT]", "tpu": "TYPE:TOPOLOGY"}
"""Those with a colon, which ends the name of a parameter in a docstring."""
_NEGATED: Final = ("lock", "measure_limits")
"""Parameters whose options say no."""
_OWN: Final[Mapping[str, Any]] = {
    "host_wait_s": arguments.HostWait,
    "lock": arguments.NoLock,
    "measure_limits": Annotated[
        bool, typer.Option("--no-limits", help="Do not measure what the machine can do.")
    ],
    "output_directory": Annotated[
        str, arguments.output_option("The run directory, local or gs://, which all steps share.")
    ],
    "suite": arguments.SuiteFile,
}
"""Options of parameters that have no flag of their name."""
_RETURNED: Final[Mapping[str, Any]] = {
    "result": Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write the step's result here, as JSON."),
    ],
    "outputs": Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the location, digest and inputs of each output here, as JSON.",
        ),
    ],
}


_WHERE_WRONG: Final = "It exits with 1 if something is wrong."


def _add(
    step: Callable[..., engine.Outputs[Any]],
    exits: str = "",
    *,
    prepare: Callable[[dict[str, Any]], None] | None = None,
    fails: Callable[[Any], bool] | None = None,
    **more: Any,
) -> None:
    """Adds the command of a step, whose help ends with `exits`.

    `prepare` makes its arguments from what was given, and `fails` says from what it returned
    whether the command exits with 1. `more` are further options, or options in place of others.
    """
    docs = docstring_parser.parse(step.__doc__ or "")
    meanings = {each.arg_name: each for each in docs.params}
    parameters = inspect.signature(step, eval_str=True).parameters
    options = {
        name: _option(each, meanings[name])
        for name, each in parameters.items()
        if name not in _NO_OPTION
    }
    options |= {name: _keyword(name, each, None) for name, each in {**more, **_RETURNED}.items()}

    def run(result: str | None, outputs: str | None, **given: Any) -> None:
        if "file" in parameters:
            given["file"] = given["suite"]
        if prepare is not None:
            prepare(given)
        given |= {name: read(given[name]) for name, read in _READ.items() if name in given}
        try:
            found = step(**given)
        except engine.NotPassed as refused:
            print(refused, file=sys.stderr)
            raise typer.Exit(refused.code) from None
        except engine.FAILURES as failure:
            print(f"failed: {failure}", file=sys.stderr)
            raise typer.Exit(Exit.FAILED) from None
        if fails is bool:  # what it returned are lines that say what is wrong
            for line in found.value:
                print(line, file=sys.stderr)
        _give(found, result, outputs)
        if fails is not None and fails(found.value):
            raise typer.Exit(Exit.FAILED)

    said = (docs.short_description, docs.long_description, exits)
    run.__doc__ = "\n\n".join(paragraph for paragraph in said if paragraph)
    run.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {}
    app.command(step.__name__.replace("_", "-"))(run)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _option(
    parameter: inspect.Parameter, meaning: docstring_parser.DocstringParam
) -> inspect.Parameter:
    """Returns the option or argument that sets a parameter of a step."""
    name, default, kind = parameter.name, parameter.default, parameter.annotation
    if name in _OWN:
        return _keyword(name, _OWN[name], False if name in _NEGATED else default)
    if kind == Sequence[str]:
        kind = list[str]
    elif kind == Sequence[str] | None:
        kind = list[str] | None
    how: dict[str, Any] = {
        "help": " ".join((meaning.description or "").split()),
        "metavar": _METAVARS.get(name, meaning.type_name),
    }
    if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
        return _keyword(name, Annotated[kind, typer.Argument(**how)], default)
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    if kind in (int, float):
        how["min"] = kind(name == "slices")
    return _keyword(name, Annotated[kind, typer.Option(flag, **how)], default)


def _give(found: engine.Outputs[Any], result: str | None, outputs: str | None) -> None:
    """Writes and prints what a step returns; JSON on one line, which engines read."""
    if outputs is not None:
        listed = {
            name: {"place": output.place, "metadata": dict(output.metadata)}
            for name, output in found.named.items()
        }
        place(outputs).write_text(json.dumps(listed, sort_keys=True))
    returned = json.dumps(found.value, sort_keys=True)
    if result is not None:
        place(result).write_text(returned)
    print(returned, flush=True)


def _text_of(path: str) -> str:
    try:
        return read_at_most(path).decode() if path else ""
    except FileNotFoundError:
        raise UserError(Problem("there is no such file", file=path)) from None
    except (OSError, ImportError, ValueError) as error:
        raise UserError(Problem(f"cannot read it: {error}", file=path)) from None


def _lines_of(path: str | None) -> list[str]:
    """Returns the lines that a step returned and --result wrote, as a list of JSON."""
    if path is None:
        return []
    text = _text_of(path)
    try:
        lines = json.loads(text)
    except (ValueError, RecursionError):
        lines = None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise UserError(
            Problem("expected a list of lines as JSON, as `aggregate --result` writes", file=path)
        )
    return lines


_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("suite", "fixture"), _text_of),
    **dict.fromkeys(_NEGATED, operator.not_),
    "lacking": _lines_of,
    "peak_memory_bytes": lambda size: arguments.parse_size(size, "--peak-memory") if size else 0,
    "points": lambda points: [
        _text_of(point[1:]) if point.startswith("@") else point for point in points
    ],
}
"""What parameters get from the options that are given."""


def _on_this_host(given: dict[str, Any]) -> None:
    if given.pop("no_cluster"):
        os.environ["ORBAX_BENCH_CLUSTER"] = "none"


def _notify(given: dict[str, Any]) -> None:
    given["notifiers"] = Notifiers.of(given.pop("notify"), given.pop("junit", None))


def _notify_of_state(given: dict[str, Any]) -> None:
    """A page of a CI job has the verdict from the step that found it."""
    if not given["verdict"] and given["lacking"] is None:
        raise UserError(
            "there is nothing to enforce: give the verdict that compare-baseline returned, or "
            "--lacking FILE"
        )
    told, given["notifiers"] = given.pop("notify"), None
    if told is not None or given["verdicts"] is not None:
        given["notifiers"] = dataclasses.replace(Notifiers.of(told), page="")


def _notify_whatever_the_suite(given: dict[str, Any]) -> None:
    """A suite that cannot be read has failed plan-sweep, and this step still reports."""
    _notify(given)
    given["suite"] = given["suite"] or ""
    try:
        _text_of(given["suite"])
    except UserError as unreadable:
        print(unreadable, file=sys.stderr)
        given["suite"] = ""


_add(engine.plan_sweep)
_add(engine.generate_checkpoint)
_add(
    engine.run_sweep_point,
    "It exits with 1 if hosts did not finish.",
    prepare=_on_this_host,
    no_cluster=arguments.NoCluster,
)
_add(engine.aggregate, "It exits with 1 if anything is missing.", fails=bool)
_add(
    engine.compare_baseline,
    "It exits with 0 for each verdict.",
    prepare=_notify,
    notify=arguments.Notify,
    junit=arguments.JUnit,
)
_add(engine.publish_baseline)
_add(
    engine.enforce_verdict,
    f"It exits with 0 for PASS, 3 for {' or '.join(REGRESSED)}, 4 for INCONCLUSIVE that is not "
    "allowed, and 1 if something is missing and nothing has regressed.",
    prepare=_notify_of_state,
    lacking=Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The file of `aggregate --result`, or of another step."),
    ],
    notify=arguments.Notify,
)
_add(
    engine.finish,
    "It exits with 0 for every state: the other steps fail the run.",
    prepare=_notify_whatever_the_suite,
    suite=Annotated[
        str | None,
        typer.Option(metavar="SUITE", help="The suite, to say why it could not be planned."),
    ],
    notify=arguments.Notify,
)
_add(engine.calibrate)
_add(engine.study_async)
_add(
    engine.best,
    "It exits with 1 if a case has none.",
    fails=lambda ids: not all(ids),
    peak_memory_bytes=Annotated[
        str | None,
        typer.Option(
            "--peak-memory", metavar="SIZE", help="Most host memory of a point, such as 8GiB."
        ),
    ],
)
_add(engine.inspect_checkpoint, _WHERE_WRONG, fails=bool)
_add(engine.plan_save, "It exits with 1 if something will fail.", fails=bool)
_add(engine.soak, "It exits with 0 for each; enforce-verdict turns the word into an exit code.")
_add(engine.recovery, "It exits with 1 if something did not come back.", fails=bool)
