"""`orbax-bench lineage`: from a verdict back to samples, records, checkpoint, image and suite."""

from __future__ import annotations

import collections
import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orbax_bench_core.cli.results import results_console
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from orbax_bench_core.lineage import Finding, Status


_MARKS: Final[dict[Status, tuple[str, str]]] = {
    "unchanged": ("✓ unchanged", "green"),
    "changed": ("✗ changed since", "red"),
    "missing": ("✗ missing", "red"),
    "not recorded": ("✗ not recorded", "red"),
    "not trusted": ("✗ not trusted", "red"),
    "not checked": ("", ""),
    "unknown": ("? unknown", "yellow"),
}
_DIGITS: Final = len("sha256:") + 12
_SHOWN: Final = 10


def lineage(
    given: Annotated[
        str,
        typer.Argument(
            metavar="ARTIFACT_OR_DIR",
            help="A run directory or a file in one, a capture of a registry, or the name of an "
            "artifact in Vertex ML Metadata.",
        ),
    ],
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
            help="Sign lineage.json with this private Ed25519 key of OpenSSH or PEM, if "
            "everything checked is unchanged; the signature is lineage.json.sig.",
        ),
    ] = None,
    signed_by: Annotated[
        str | None,
        typer.Option(
            "--signed-by",
            metavar="FILE",
            help="Require a signature by one of the public keys in this file.",
        ),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Another address of Vertex AI than that of the location."),
    ] = None,
) -> None:
    """Trace a verdict to what it was made from, and check that none of it has changed.

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
    from orbax_bench_core.lineage import BROKEN, is_unchanged, trace

    findings = trace(given, endpoint, deep=deep, sign=sign, signed_by=signed_by)
    if as_json:
        listed = [dataclasses.asdict(finding) for finding in findings]
        said = {"given": given, "unchanged": is_unchanged(findings), "findings": listed}
        print(json.dumps(said, indent=2))
    else:
        print_findings(findings)
    if sign is not None and is_unchanged(findings) is False:
        print("error: not signed, for not all is as it was noted", file=sys.stderr)
    broken = any(finding.status in BROKEN or finding.left_out for finding in findings)
    raise typer.Exit(exit_code(incomplete=broken))


def print_findings(findings: Sequence[Finding]) -> None:
    """Prints what was found, a line each, and what to do where something was never recorded."""
    console = results_console()
    shown: collections.Counter[str] = collections.Counter()
    for finding in findings:
        shown[finding.what] += 1
        if shown[finding.what] <= _SHOWN:
            console.print(_line(finding), soft_wrap=True)
    for what, count in shown.items():
        if count > _SHOWN:
            more = f"and {count - _SHOWN} more of {what}; --json has all"
            console.print(more, markup=False, highlight=False)
    for line in dict.fromkeys(line for finding in findings for line in finding.left_out):
        console.print(f"left out {line}", markup=False, highlight=False, soft_wrap=True)
    if any(finding.status == "not recorded" for finding in findings):
        console.print(
            "What is not recorded was published by an earlier release, or never: `orbax-bench "
            "report DIR` notes what is there now.",
            markup=False,
            highlight=False,
        )


def _line(finding: Finding) -> Text:
    from rich.text import Text

    line = Text(f"{'  ' * finding.depth}{finding.what}", style="bold")
    line.append(f" {finding.name}", style="not bold")
    mark, style = _MARKS[finding.status]
    if finding.compared:
        mark = f"{mark.partition(' ')[0]} {finding.compared}"
    if mark:
        line.append(f"  {mark}", style=f"not bold {style}")
    digest = finding.digest or finding.recorded
    if digest not in ("", "unknown"):
        line.append(f"  {digest[:_DIGITS]}", style="not bold cyan")
    if finding.status == "changed":
        line.append(f" was {finding.recorded[:_DIGITS]}", style="not bold cyan")
    for name, value in finding.details.items():
        short = value[:12] if len(value) == 64 and value.isalnum() else value
        line.append(f"  {name} {short}", style="not bold dim")
    return line
