"""Arguments that several sub-commands share, and the flags of those that measure."""

import dataclasses
import functools
import inspect
import re
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal

import typer


def both_spellings(flag: str, **how: Any) -> Any:
    """Returns an option that Orbax's own framework spells with underscores; both are taken."""
    return typer.Option(flag, f"--{flag[2:].replace('-', '_')}", **how)


def output_option(about: str, metavar: str | None = None) -> Any:
    """Returns the option of a directory that a command writes into."""
    flags = ("--output-directory", "--output_directory", "-o")
    return typer.Option(*flags, metavar=metavar, help=about)


SuiteFile = Annotated[
    str, typer.Argument(metavar="SUITE", help="The suite file: YAML, a local path or gs://.")
]

FoldersOfRuns = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR...", help="Folders of run directories, up to two levels deep; or gs://."
    ),
]


OutputDirectory = Annotated[
    str,
    output_option(
        "The run directory, local or gs://. If it holds an unfinished run of the same suite, that "
        "run is finished."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
ShowDetails = Annotated[
    bool, typer.Option("--details", help="Print all that the page has, not only the answer.")
]
Html = Annotated[str | None, typer.Option(metavar="FILE", help="Also write a page.")]
Markdown = Annotated[str | None, typer.Option(metavar="FILE", help="Also write Markdown.")]
LocalDirectory = Annotated[
    str | None,
    both_spellings(
        "--local-directory",
        help="Scratch directory on the local disk, for benchmarks that use one.",
    ),
]
Devices = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Simulate this many CPU devices; meshes that need another number are skipped. "
        "By default each mesh gets what it needs.",
    ),
]
Override = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY.PATH=VALUE",
        help="Replace a value of the suite, such as checkpoint_config.scale=0.01 or "
        "benchmarks.*.options.use_ocdbt=[true,false]; repeatable.",
    ),
]

Notify = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Post to this webhook when the state of the suite changes: REGRESSION, a failure, or "
        "PASS again. Other users can read command lines: keep the address in a file and give "
        "@FILE, or in the variable ORBAX_BENCH_NOTIFY. slack+URL chooses Slack's format.",
    ),
]
JUnit = Annotated[
    str | None, typer.Option(metavar="FILE", help="Also write the verdicts as JUnit XML here.")
]


Metrics = Annotated[
    Literal["all", "changed", "none"],
    typer.Option(
        help="Metrics to show of each point: all, by operation; those that differ most; or none. "
        "Pages and JSON have all."
    ),
]
AllowInconclusive = Annotated[
    bool,
    typer.Option(
        "--allow-inconclusive", help="Exit with 0 rather than 4 when there is no clear verdict."
    ),
]
MORE: Final = "--more"
More = Annotated[
    int | None,
    typer.Option(
        MORE,
        metavar="[N]",
        min=0,
        help="Go on in the same directory where the verdict is INCONCLUSIVE, with all that is "
        "measured: to the next look or, with a number, by at least so many operations per arm. "
        "Error is reserved for these looks, so that every promise holds.",
    ),
]
PassportFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="A noise passport, written by `orbax-bench calibrate --save`, to predict how long "
        "it will take.",
    ),
]
NoLock = Annotated[
    bool, typer.Option("--no-lock", help="Measure even while another run measures on this machine.")
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Show each repeat as it starts and ends, and repeats reused from an earlier run.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print only the result. Waiting messages go to standard error."
    ),
]

LogFormatOption = Annotated[
    Literal["text", "json"], typer.Option(help="text for people, json for one JSON object a line.")
]


NoCluster = Annotated[
    bool,
    both_spellings(
        "--no-cluster", help="Measure on this host alone, whatever the variables of a launcher say."
    ),
]
HostWait = Annotated[
    float,
    both_spellings(
        "--host-wait",
        min=0,
        metavar="SECONDS",
        help="How long a lost host may take to come back before the run ends as incomplete.",
    ),
]
PortRangeOption = Annotated[
    str | None,
    both_spellings(
        "--port-range",
        metavar="FIRST-LAST",
        help="Ports of host 0 for coordinating groups of workers, if a firewall allows only "
        "some; otherwise any free port.",
    ),
]
KEEP_DATA: Final = (
    "Keep the checkpoint of each repeat. Otherwise it is deleted after its repeat, as a "
    "training job deletes old ones; saves take longer if it is kept."
)
KeepData = Annotated[bool, both_spellings("--keep-data", help=KEEP_DATA)]


_UNITS: Final = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE: Final = re.compile(rf"(\d{{1,18}}(?:\.\d+)?)\s*({'|'.join(_UNITS)})")


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasureFlags:
    """Flags of a command that measures, in the order of its help; each takes some of them."""

    local_directory: LocalDirectory = None
    override: Override = None
    devices: Devices = None
    keep_data: KeepData = False
    no_lock: NoLock = False
    no_cluster: NoCluster = False
    host_wait: HostWait = 120
    port_range: PortRangeOption = None
    notify: Notify = None
    junit: JUnit = None
    verbose: Verbose = False
    quiet: Quiet = False
    log_format: LogFormatOption = "text"
    details: ShowDetails = False
    as_json: AsJson = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class PageFlags:
    """Flags of a command that shows a document, and writes it as pages."""

    details: ShowDetails = False
    as_json: AsJson = False
    html: Html = None
    markdown: Markdown = None


def takes_flags(
    *, without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command, in the place of each parameter that is a group, all its flags but some."""

    def flags_of(kind: Any) -> list[inspect.Parameter]:
        kinds = typing.get_type_hints(kind, include_extras=True)
        return [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=kinds[field.name],
            )
            for field in dataclasses.fields(kind)
            if field.name not in without
        ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        groups: dict[str, tuple[Any, list[inspect.Parameter]]] = {
            each.name: (each.annotation, flags_of(each.annotation))
            for each in own
            if dataclasses.is_dataclass(each.annotation)
        }

        @functools.wraps(command)
        def parsed(**given: Any) -> None:
            for name, (kind, flags) in groups.items():
                given[name] = kind(**{one.name: given.pop(one.name) for one in flags})
            command(**given)

        parameters = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in own
            for one in (groups[each.name][1] if each.name in groups else [each])
        ]
        del parsed.__wrapped__
        parsed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        parsed.__annotations__ = {one.name: one.annotation for one in parameters}
        return parsed

    return decorate


def parse_size(text: str, flag: str = "--size") -> int:
    """Returns the bytes of a size: a number with a binary unit, such as 1.5GiB, or of bytes."""
    from orbax_bench_core.errors import UserError, shown

    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UserError(
            f"{flag}: {shown(text)} is not a size; give a number with KiB, MiB, GiB or TiB, such "
            "as 256MiB or 1.5GiB, or a number of bytes"
        )
    return int(float(match[1]) * _UNITS[match[2]])
