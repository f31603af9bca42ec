"""Pictures of a verdict, from the page of a real comparison.

`make demo` makes one in `demo`; `python -m website.pictures demo` then writes `docs/pictures`. It
needs Chromium, and is run by hand: a picture changes with the page, not with every commit.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PICTURES: Final = ROOT / "docs" / "pictures"
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_WINDOW: Final = "1000,900"
"""Width and height in pixels: the headline of a comparison of one point, and its table."""


def main(arguments: list[str]) -> int:
    """Takes the pictures of the run directory that is named; returns the exit code."""
    page = Path(*arguments[:1]) / "verdicts.html"
    browser = next((one for one in _BROWSERS if shutil.which(one)), None)
    if len(arguments) != 1 or not page.is_file() or browser is None:
        print(
            "usage: python -m website.pictures DIR\nDIR holds verdicts.html, as `demo` does after "
            f"`make demo`; one of {', '.join(_BROWSERS)} must be on PATH",
            file=sys.stderr,
        )
        return 2
    PICTURES.mkdir(exist_ok=True)
    subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(f"--window-size={_WINDOW}", f"--screenshot={PICTURES / 'verdict.png'}"),
            page.resolve().as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    _with_fewer_colours(PICTURES / "verdict.png")
    (PICTURES / "intervals.svg").write_text(first_figure(page.read_text()))
    return 0


def _with_fewer_colours(picture: Path) -> None:
    """Halves the bytes of a picture of text."""
    from PIL import Image

    with Image.open(picture) as whole:
        whole.convert("RGB").quantize(64).save(picture, optimize=True)


def first_figure(page: str) -> str:
    """Returns the first figure of a page as a file of its own, in the page's light colours.

    Raises:
        ValueError: The page has no figure.
    """
    found = re.search(r"<svg.*?</svg>", page, re.DOTALL)
    if found is None:
        raise ValueError("the page has no figure")
    root = re.search(r":root \{(.*?)\}", page, re.DOTALL)
    colours = dict(re.findall(r"(--[\w-]+): ([^;]+);", root.group(1) if root else ""))
    figure = re.sub(
        r"var\((--[\w-]+)\)", lambda one: colours.get(one.group(1), "currentColor"), found.group()
    )
    width, height = re.findall(r'viewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"', figure)[0]
    background = (
        f'<rect width="{width}" height="{height}" fill="{colours.get("--page", "white")}"/>'
    )
    return figure.replace(">", f">{background}", 1) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
