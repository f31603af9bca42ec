"""`orbax-bench lineage`: from a verdict back to samples, records, checkpoint, image and suite."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orbax_bench_core.results.lineage_chain import Link

EXIT_BROKEN = 1


def lineage(
    given: Annotated[
        str,
        typer.Argument(
            metavar="ARTIFACT_OR_DIR",
            help="A run directory or a file in one, a capture of a registry, what a step of a "
            "local pipeline run wrote, or the name of an artifact in Vertex ML Metadata.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the chain as JSON.")] = False,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Another address of Vertex AI than that of the location."),
    ] = None,
) -> None:
    """Trace a verdict to what it was made from, and check that none of it has changed.

    Every digest is computed anew and compared with the one that was noted when the next thing was
    made. A run directory needs no network.

    orbax-bench lineage results

    orbax-bench lineage results/verdicts.json --json

    orbax-bench lineage projects/P/locations/L/metadataStores/default/artifacts/ID

    Exit codes: 0 all is as it was; 1 something has changed, is missing or was never recorded;
    2 this has no lineage.
    """
    from orbax_bench_core.cli.lineage_find import chain_of
    from orbax_bench_core.cli.lineage_show import print_chain

    chain = chain_of(given, endpoint)
    if as_json:
        print(json.dumps(_document(given, chain), indent=2))
    else:
        print_chain(chain)
    raise typer.Exit(EXIT_BROKEN if chain.broken else 0)


def _document(given: str, chain: Link) -> dict[str, object]:
    return {"given": given, "unchanged": not chain.broken, "chain": chain.as_json()}
