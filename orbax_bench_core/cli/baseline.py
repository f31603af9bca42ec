"""`orbax-bench baseline`: keep runs as baselines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orbax_bench_core.cli.arguments import AsJson, ShowDetails
from orbax_bench_core.cli.terminal import show as show_result
from orbax_bench_core.exit_codes import Exit

if TYPE_CHECKING:
    from orbax_bench_core.baselines import Registry

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Keep runs as baselines, which `orbax-bench compare` takes.\n\nA registry is a directory, "
    "local or gs://, to which files are only added: it keeps all captures of the same code, and "
    "the one that a promotion replaces.\n\n"
    "orbax-bench baseline capture gs://bucket/baselines results --promote\n\n"
    "orbax-bench compare gs://bucket/baselines new-results",
)

RegistryPath = Annotated[
    str, typer.Argument(metavar="REGISTRY", help="The registry: a directory, local or gs://.")
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Promote it even if its code had uncommitted changes."),
]


@app.command()
def capture(
    registry: RegistryPath,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, local or gs://.")],
    arm: Annotated[
        Literal["baseline", "candidate"],
        typer.Option(help="Which side of a paired run (`ab`) to take."),
    ] = "candidate",
    label: Annotated[
        str | None,
        typer.Option(
            help="What to file it under, such as v0.12.8; by default the commit of the code under "
            "test: of your class or, for a built-in, of the suite file."
        ),
    ] = None,
    promote: Annotated[
        bool, typer.Option("--promote", help="Make it the baseline of its points at once.")
    ] = False,
    force: Force = False,
    note: Annotated[str, typer.Option(help="The reason, for later readers.")] = "",
) -> None:
    """Store a run: one file per point, with every raw sample.

    A point with a failed repeat is left out. Several may capture at the same time. It exits with 1
    when files among the records had to be left out.

    orbax-bench baseline capture baselines results --label v0.12.8 --promote
    """
    from orbax_bench_core.baselines import capture_run, check_revision
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.pages import count
    from orbax_bench_core.records import RunDirectory

    place = _registry(registry, begins=True)
    if label is not None:
        check_revision(label)
    captured = capture_run(RunDirectory(run), place, arm=arm, revision=label, to_promote=promote)
    for name, reason in captured.left_out.items():
        show_result(f"left out {name}: {reason}")
    for line in captured.strays:
        show_result(f"left out: {line}")
    if captured.capture is None:
        raise UserError(f"nothing to capture in {run}: no point has passed in full")
    show_result(f"captured {count(len(captured.capture.points), 'point')}:")
    show_result(f"{place.root}/{captured.capture.reference}")
    show_result(f"code under test: {captured.capture.code.words}")
    if promote:
        _promote(place, captured.capture.id, [], note, force=force)
    if captured.strays:
        raise typer.Exit(Exit.FAILED)


@app.command("list")
def list_captures(
    registry: RegistryPath, details: ShowDetails = False, as_json: AsJson = False
) -> None:
    """List the captures, newest first, and the baseline.

    orbax-bench baseline list gs://bucket/baselines
    """
    from orbax_bench_core.baselines import captures_document

    place = _registry(registry)
    captures, current = place.captures(), place.current()
    if as_json:
        found = [capture.model_dump(mode="json") for capture in reversed(captures)]
        print(json.dumps({"captures": found, "baseline": current}, indent=2))
    else:
        show_result(captures_document(captures, current, registry), details=details)


@app.command()
def show(
    registry: RegistryPath,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[CAPTURE]",
            help="An id or its beginning, a label, a commit, a tag, a branch, `nearest` or "
            "`latest`; by default the promoted one.",
        ),
    ] = None,
    details: ShowDetails = False,
    as_json: AsJson = False,
) -> None:
    """Show the baseline and its history, or one capture.

    orbax-bench baseline show baselines

    orbax-bench baseline show baselines latest
    """
    from orbax_bench_core.baselines import capture_document, find_capture, promoted_document

    place = _registry(registry)
    current = place.current()
    if name is not None:
        chosen = find_capture(place.captures(), name)
        if as_json:
            print(chosen.model_dump_json(indent=2))
            return
        points = place.of_capture(chosen)
        show_result(capture_document(chosen, points, current), details=details)
        return
    promotions = place.promotions()
    if as_json:
        log = [promotion.model_dump(mode="json") for promotion in promotions]
        print(json.dumps({"baseline": current, "promotions": log}, indent=2))
        return
    baselines = place.baselines((reference, point_id) for point_id, reference in current.items())
    document = promoted_document(tuple(baselines), current, promotions, registry)
    show_result(document, details=details)


@app.command()
def promote(
    registry: RegistryPath,
    to: Annotated[
        str,
        typer.Option(
            metavar="CAPTURE",
            help="An id or its beginning, a label, a commit, a tag, a branch, `nearest`, `latest`, "
            "or `previous` to undo the last promotion.",
        ),
    ] = "latest",
    point: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this point of it; repeatable.")
    ] = None,
    force: Force = False,
    note: Annotated[str, typer.Option(help="The reason, for later readers.")] = "",
) -> None:
    """Make a capture the baseline of its points.

    A promotion is atomic, and the replaced capture stays in the registry:

    orbax-bench baseline promote baselines --to v0.12.8 --note "faster reads, seen on 3 machines"

    orbax-bench baseline promote baselines --to previous
    """
    _promote(_registry(registry), to, point or [], note, force=force)


def _promote(registry: Registry, name: str, points: list[str], note: str, *, force: bool) -> None:
    from orbax_bench_core.baselines import promote_capture
    from orbax_bench_core.errors import command

    done = promote_capture(registry, name, points=points, note=note, force=force)
    for point_id, reference in done.promotion.points.items():
        before = done.replaced[point_id]
        show_result(f"{point_id}: {reference or 'none'}, was {before or 'none'}")
    undo = command("baseline", "promote", registry.root, "--to", "previous")
    said = f"Undo it with `{undo}`"
    if done.overtaken is not None:
        by = done.overtaken.by
        said = (
            f"{by.get('user')} on {by.get('host')} promoted at the same moment and has the last "
            f"word on some of these points: see `{command('baseline', 'show', registry.root)}`"
        )
    show_result(f"promotion {done.promotion.number}. {said}")


def _registry(path: str, *, begins: bool = False) -> Registry:
    from orbax_bench_core.baselines import Registry
    from orbax_bench_core.errors import UserError, command

    registry = Registry(path)
    if (registry.root / "run.json").exists():
        raise UserError(f"{path} is a run directory; the registry comes first, then the run")
    if not begins and not registry.exists():
        raise UserError(
            f"{path} is not a registry: nothing was captured there; store a run in it with "
            f"`{command('baseline', 'capture', path, 'RUN')}`"
        )
    return registry
