"""Bill of materials of an image, as CycloneDX: what is installed, and what its base has.

    python images/sbom.py NAME VERSION FILE

Runs in the image's own Python while it is built. Versions are those of requirements.lock, which has
the hashes that pip compared.
"""

import importlib.metadata
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

DEBIAN = Path("/var/lib/dpkg/status")


def bill(name: str, version: str, *, debian: Path = DEBIAN) -> dict[str, Any]:
    """Returns the bill of materials of an image.

    Args:
        name: Name of the image.
        version: Its version.
        debian: The list of Debian's packages; there need not be one.
    """
    listed = {each["bom-ref"]: each for each in (*python_packages(), *debian_packages(debian))}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": name, "version": version}},
        "components": [listed[reference] for reference in sorted(listed)],
    }


def python_packages() -> Iterator[dict[str, Any]]:
    """Yields what this Python can import."""
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        found = _component(
            name, distribution.version, f"pkg:pypi/{name}@{quote(distribution.version)}"
        )
        if expression := distribution.metadata.get("License-Expression"):
            found["licenses"] = [{"expression": expression}]
        yield found


def debian_packages(status: Path) -> Iterator[dict[str, Any]]:
    """Yields the packages that dpkg has installed."""
    if not status.exists():
        return
    for entry in status.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", entry, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            name, version = fields["Package"], fields["Version"]
            place = f"pkg:deb/debian/{name}@{quote(version)}?arch={fields['Architecture']}"
            yield _component(name, version, place)


def _component(name: str, version: str, place: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": place, "name": name, "version": version, "purl": place}


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(json.dumps(bill(sys.argv[1], sys.argv[2]), indent=1))
