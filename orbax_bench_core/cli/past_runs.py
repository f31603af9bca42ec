"""Commands that read past runs: `best`, `compare`, `history`, `lineage`, `report` and `site`."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Annotated

import typer

from orbax_bench_core.cli import arguments, terminal
from orbax_bench_core.cli.arguments import AsJson, ShowDetails, parse_size
from orbax_bench_core.exit_codes import Exit, exit_code

PageWithFigures = Annotated[
    str | None, typer.Option(metavar="FILE", help="Also write a page with figures.")
]


def best(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The run directory of a sweep.")],
    goal: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL",
            help="What to make small: blocking, save, load, bytes, memory, an operation, or "
            "several with weights, such as blocking=3,load=1. By default save, or the first that "
            "was measured.",
        ),
    ] = None,
    peak_memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Most host memory that a point may take, such as 8GiB."),
    ] = None,
    html: PageWithFigures = None,
    code: Annotated[
        bool,
        typer.Option(
            "--code", help="Print the whole code of what is recommended, and an entry of a suite."
        ),
    ] = False,
    details: ShowDetails = False,
    as_json: AsJson = False,
) -> None:
    """Show which options to take.

    It says whether one setting is best or several tie, what that gains over Orbax's defaults, and
    how to ask Orbax for it. With --details also what each option does, which settings no other
    beats in save, load and bytes together, why this one is recommended, and what was not measured.

    orbax-bench best /tmp/bench --goal blocking=3,load=1 --peak-memory 8GiB

    Exit codes: 0; 1 no point can be recommended; 2 there is no sweep, or the goal was not measured.
    """
    from orbax_bench_core.analysis.best import best as choose
    from orbax_bench_core.analysis.best import best_document
    from orbax_bench_core.baselines import registry_path

    bound = None if peak_memory is None else parse_size(peak_memory, "--peak-memory")
    target = None if html is None else registry_path(html)
    found = choose(directory, goal=goal, peak_memory=bound)
    terminal.write_page(best_document(found, directory), target)
    document = best_document(found, directory, code=code)
    terminal.show_answer(found, document, target, as_json=as_json, details=details)
    answered = all(case.recommendation for case in found.cases)
    raise typer.Exit(exit_code(incomplete=not answered))


def history(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Run directories, directories that hold some, patterns such as 'nightly/*', or "
            "registries of baselines; local or gs://.",
        ),
    ],
    html: PageWithFigures = None,
    significance: Annotated[
        float,
        typer.Option(
            help="Chance of a flag within 60 nights when nothing has changed, from 0.001 to 0.1."
        ),
    ] = 0.05,
    every: Annotated[
        bool, typer.Option("--all", help="Also show operations that decide no verdict.")
    ] = False,
    details: ShowDetails = False,
    as_json: AsJson = False,
) -> None:
    """Show past runs in order of time, and when they changed.

    For paired runs (`ab`) it follows the ratio to the reference arm, which stays stable when the
    machine does not, and flags each change with the versions and commits before and after it. A
    flag is a question: next to it is the command for a paired comparison of both sides, which
    answers it. Pin the reference: an environment with exact versions. For other runs it shows
    seconds. In a folder with a morning page it reuses that page's summaries of finished runs.

    orbax-bench history nightly --html history.html

    orbax-bench history gs://bucket/nightly 'more/*'

    Exit codes: 0; 1 files were left out, because their content does not match their path.
    """
    from orbax_bench_core.analysis.history import LEAST, MOST, history_document
    from orbax_bench_core.analysis.history import history as build
    from orbax_bench_core.baselines import find_runs, registry_path
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.exports.site import Cards

    if not LEAST <= significance <= MOST:
        raise UserError(f"--significance: give a number from {LEAST:g} to {MOST:g}")
    target = None if html is None else registry_path(html)
    left_out: list[str] = []
    found = build(
        find_runs(places, left_out=left_out),
        significance=significance,
        left_out=left_out,
        read=Cards.beside(places).measured,
    )
    document = history_document(found, every=every)
    terminal.write_page(document, target)
    terminal.show_answer(found, document, target, as_json=as_json, details=details)
    raise typer.Exit(exit_code(incomplete=bool(found.left_out)))


def report(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A run directory.")],
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Record a digest of all bytes of the loaded checkpoints, also of those above "
            "256 MiB, for `lineage --deep`.",
        ),
    ] = False,
    details: ShowDetails = False,
) -> None:
    """Make every output of a run again, and show what it found.

    It reads the records, which stay as they are.

    Exit codes: 0 all is written; 1 it cannot be written, or files were left out, because their
    content does not match their path; 2 there is no run.
    """
    from orbax_bench_core.analysis.summary import notes_lines
    from orbax_bench_core.analysis.verdicts import judge_run
    from orbax_bench_core.cli.measurement import unwritten
    from orbax_bench_core.publishing import publish, publish_verdicts
    from orbax_bench_core.records import RunDirectory, RunFile

    console = terminal.new_console()
    run = RunDirectory(directory)
    try:
        summary, document = publish(run, deep=deep)
        if run.read_info().paired and not (run.root / RunFile.VERDICTS).exists():
            publish_verdicts(run, judge_run(run))  # as of a comparison that was interrupted
    except OSError as failure:
        print(f"error: {unwritten(failure, 'report', str(run.root))}", file=sys.stderr)
        raise typer.Exit(Exit.FAILED) from None
    for line in notes_lines(run.read_info()):
        terminal.show(line, console)
    terminal.show(document, console, details=details)
    terminal.show(f"Page: {run.root}/report.html", console)
    raise typer.Exit(exit_code(incomplete=bool(summary.left_out)))


def site(
    places: arguments.FoldersOfRuns,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder of index.html; by default DIR."),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="Runs of each suite to show, the newest ones.")
    ] = 60,
) -> None:
    """Write the morning page of past runs: DIR/index.html.

    It says how many suites need a person, and has a row for each, the most urgent first: state,
    since when, trend against the baseline, age of the last run. Below are changes with the releases
    around them, and every run with links to its pages. From then on every run into a folder below
    DIR updates it, and every run if ORBAX_BENCH_SITE names DIR. It needs no server and no network,
    only its folder.

    orbax-bench site ~/nightly

    orbax-bench site gs://bucket/nightly gs://bucket/releases -o gs://bucket/site

    Exit codes: 0; 1 something could not be read, which the page names.
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.exports.site import PAGE, site_document, write_site
    from orbax_bench_core.records import RunDirectory

    folder = places[0] if output is None else output
    try:
        found = write_site(places, folder, most=most)
    except OSError as failure:
        raise UserError(f"cannot write {folder}/{PAGE}: {failure}") from None
    terminal.show(site_document(found, RunDirectory(folder).root))
    terminal.show(f"Page: {folder.rstrip('/')}/{PAGE}")
    raise typer.Exit(exit_code(incomplete=bool(found.unread)))


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
    details: arguments.ShowDetails = False,
    as_json: arguments.AsJson = False,
    allow_inconclusive: arguments.AllowInconclusive = False,
    notify: arguments.Notify = None,
    junit: arguments.JUnit = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
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

    orbax-bench compare baselines/nearest results --details

    orbax-bench compare results --rule margin=0.3

    In a registry of baselines NAME of REGISTRY/NAME is an id, a label, a commit, a tag, a branch,
    or `nearest`: the nearest ancestor of HEAD that has a capture.

    Exit codes: 0 PASS, or an unpaired warning; 1 files were left out, because their content does
    not match their path; 2 nothing to compare; 3 REGRESSION and 4 INCONCLUSIVE in pairs; 3 unpaired
    beyond 2x; 4 with --rule, whose result is not a verdict of the run.
    """
    from orbax_bench_core.analysis.acceptance import standing, with_acceptance
    from orbax_bench_core.analysis.verdicts import compare_stored, verdicts_document
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.publishing import Notifiers

    notifiers, directory = Notifiers.of(notify, junit), candidate or baseline
    with notifiers.on_failure(directory):
        found = with_acceptance(compare_stored(baseline, candidate, rule or ()), directory)
    console = terminal.new_console()
    document = verdicts_document(found, directory, rule or ())
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        terminal.show(document, console, details=details)
    terminal.write_page(document, html)
    if html is not None and not as_json:
        terminal.show(f"Page: {html}", console)
    if not found.points:
        why = (
            f"{baseline} and {candidate or baseline} have no point in common, so that nothing was "
            "compared; `--details` says in what their points differ"
        )
        notifiers.failed(found.suite, directory, why)
        raise UserError(why)
    if not as_json and (known := standing(found, directory)):
        terminal.show(known.said, console)
    code = exit_code(found.outcome, allow_inconclusive=allow_inconclusive)
    notifiers.verdicts(found, directory)
    raise typer.Exit(code)


def lineage(
    given: Annotated[
        str,
        typer.Argument(
            metavar="ARTIFACT_OR_DIR",
            help="A run directory or a file in one, a capture of a registry, or the name of an "
            "artifact in Vertex ML Metadata.",
        ),
    ],
    details: ShowDetails = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Read all bytes of checkpoints, not only names, sizes and metadata files.",
        ),
    ] = False,
    sign: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Sign lineage.json by ssh-keygen with this private key of OpenSSH, if everything "
            "checked is unchanged; the signature is lineage.json.sig.",
        ),
    ] = None,
    signed_by: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Require a signature that ssh-keygen verifies by this file: public keys, or a "
            "list of allowed signers.",
        ),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Another address of Vertex AI than that of the location."),
    ] = None,
) -> None:
    """Trace a verdict to its inputs, and check each for changes.

    For a run directory it checks everything recorded, for a file its inputs. Every digest is
    computed again and compared with the recorded one. Only what was read in this call, byte by
    byte, is called "unchanged"; arrays of a checkpoint are read with --deep. A run directory needs
    no network.

    orbax-bench lineage results

    orbax-bench lineage results/verdicts.json --json

    orbax-bench lineage results --deep

    orbax-bench lineage results --sign ~/.ssh/id_ed25519

    orbax-bench lineage results --signed-by id_ed25519.pub

    orbax-bench lineage projects/P/locations/L/metadataStores/default/artifacts/ID

    Exit codes: 0 everything read is unchanged; 1 something has changed, is missing or was never
    recorded, a signature is invalid or by another key, or a file among the records cannot be read
    as one; 2 this has no lineage.
    """
    from orbax_bench_core.lineage import BROKEN, is_unchanged, lineage_document, trace
    from orbax_bench_core.records import RunDirectory

    findings = trace(given, endpoint, deep=deep, sign=sign, signed_by=signed_by)
    if as_json:
        listed = [dataclasses.asdict(finding) for finding in findings]
        said = {"given": given, "unchanged": is_unchanged(findings), "findings": listed}
        print(json.dumps(said, indent=2))
    else:
        run = given if RunDirectory(given).exists() else ""
        document = lineage_document(findings, given, run=run, deep=deep)
        terminal.show(document, details=details)
    if sign is not None and is_unchanged(findings) is False:
        print("error: not signed, for not all is as it was noted", file=sys.stderr)
    broken = any(finding.status in BROKEN or finding.left_out for finding in findings)
    raise typer.Exit(exit_code(incomplete=broken))
