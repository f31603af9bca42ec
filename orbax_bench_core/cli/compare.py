"""`orbax-bench compare`: verdicts on runs and baselines that are on storage."""

from typing import Annotated

import typer

from orbax_bench_core.cli import arguments
from orbax_bench_core.cli.results import show, write_page
from orbax_bench_core.cli.terminal import new_console


def compare(
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help="A run directory or a stored baseline.")
    ],
    candidate: Annotated[
        str | None,
        typer.Argument(
            metavar="[CANDIDATE]",
            help="A run directory or a stored baseline; leave it out for a run of `orbax-bench "
            "ab`, which holds both arms.",
        ),
    ] = None,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write a page that needs no other file.")
    ] = None,
    metrics: arguments.Metrics = "changed",
    as_json: arguments.AsJson = False,
    allow_inconclusive: arguments.AllowInconclusive = False,
    notify: arguments.Notify = None,
    junit: arguments.JUnit = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="KEY=VALUE",
            help="Judge by another rule than the run's own, such as margin=0.3 or "
            "metrics.save.margin=0.3: an exploration, labelled as such; repeatable.",
        ),
    ] = None,
) -> None:
    """Compare two runs or baselines, point by point.

    The arms of one run are compared in pairs, as they were measured. Two separate runs are compared
    unpaired: a machine that was busier during one of them looks exactly like a regression, so the
    result is only a warning, unless an exact test shows more than 2x. Points are matched by id;
    those that only one side has are listed, with the fields that differ.

    orbax-bench compare results

    orbax-bench compare last_week results --html comparison.html

    orbax-bench compare baselines/nearest results --metrics all

    orbax-bench compare results --rule margin=0.3

    In a registry of baselines NAME of REGISTRY/NAME is an id, a label, a commit, a tag, a branch,
    or `nearest`: the nearest ancestor of HEAD that has a capture.

    Exit codes: 0 PASS, or an unpaired warning; 1 files were left out, because their content does
    not match their path; 2 nothing to compare; 3 REGRESSION and 4 INCONCLUSIVE in pairs; 3 unpaired
    beyond 2x; 4 with --rule, whose result is not a verdict of the run.
    """
    from orbax_bench_core.analysis.verdicts import compare_stored, verdicts_document
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.exit_codes import exit_code
    from orbax_bench_core.steps import Notifiers

    notifiers = Notifiers.of(notify, junit)
    with notifiers.on_failure(None, candidate or baseline):
        found = compare_stored(baseline, candidate, rule or ())
    console = new_console()
    document = verdicts_document(found, metrics)
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        show(document, console)
    write_page(document, html)
    if html is not None and not as_json:
        show(f"Page: {html}", console)
    if not found.points:
        why = (
            f"{baseline} and {candidate or baseline} have no point in common, so that nothing was "
            "compared; above stands in what their points differ"
        )
        notifiers.failed(found.suite, candidate or baseline, why)
        raise UserError(why)
    code = exit_code(found.outcome, allow_inconclusive=allow_inconclusive)
    notifiers.verdicts(found, code, candidate or baseline)
    raise typer.Exit(code)
