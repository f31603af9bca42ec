"""Pictures of pages of real runs.

`python -m website.pictures KIND DIR` writes pictures into `docs/pictures`, each of the head of a
page in DIR: `verdict` and `pass` of comparisons, `best` of a sweep, `options` and `judged` of the
tutorials for ML engineers and Orbax maintainers, `morning` of the folder of many runs, `soak` of a
soak, `diagnose` of the page `diagnose.html`. `docs/gallery.md` has the commands that made them. It
needs Chromium, and is run by hand: pictures change with pages, not with commits.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PICTURES: Final = ROOT / "docs" / "pictures"
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_TAKEN: Final = {
    "verdict": {
        "headline.png": ("verdicts.html", "1000,410"),
        "verdict.png": ("verdicts.html", "1000,720"),
    },
    "pass": {"pass.png": ("verdicts.html", "1000,680")},
    "best": {"best.png": ("report.html", "1000,530")},
    "options": {"options.png": ("report.html", "1100,800")},
    "morning": {"morning.png": ("index.html", "1000,640")},
    "judged": {"judged.png": ("verdicts.html", "1000,640")},
    "soak": {"soak.png": ("soak.html", "1000,620")},
    "diagnose": {"diagnose.png": ("diagnose.html", "1000,480")},
}
"""Pictures of each kind: the page, and the width and height in pixels of what is seen of it."""

_FIGURE: Final = "720,230"


def main(arguments: list[str]) -> int:
    """Takes the pictures of a kind from the directory that is named; returns the exit code."""
    kind, directory = (*arguments, "", "")[:2]
    taken = _TAKEN.get(kind, {})
    pages = {name: Path(directory) / source for name, (source, _) in taken.items()}
    browser = next((one for one in _BROWSERS if shutil.which(one)), None)
    sound = len(arguments) == 2 and pages and all(page.is_file() for page in pages.values())
    if not sound or browser is None:
        print(
            f"usage: python -m website.pictures {'|'.join(_TAKEN)} DIR\nDIR holds the page, and "
            f"one of {', '.join(_BROWSERS)} must be on PATH",
            file=sys.stderr,
        )
        return 2
    PICTURES.mkdir(exist_ok=True)
    for name, (_, window) in taken.items():
        _take(browser, pages[name], PICTURES / name, window)
    if kind == "verdict":
        with tempfile.TemporaryDirectory() as folder:
            alone = Path(folder) / "figure.html"
            alone.write_text(first_figure(pages["verdict.png"].read_text()))
            _take(browser, alone, PICTURES / "intervals.png", _FIGURE)
    return 0


def _take(browser: str, page: Path, picture: Path, window: str) -> None:
    subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(f"--window-size={window}", f"--screenshot={picture}", page.resolve().as_uri()),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    _with_fewer_colours(picture)


def _with_fewer_colours(picture: Path) -> None:
    """Halves the bytes of a picture of text."""
    from PIL import Image

    with Image.open(picture) as whole:
        whole.convert("RGB").quantize(128, method=Image.Quantize.FASTOCTREE).save(
            picture, optimize=True
        )


def first_figure(page: str) -> str:
    """Returns a page with the style of a page, and of its content the first figure alone.

    Raises:
        ValueError: The page has no figure.
    """
    found = re.search(r"<figure>.*?</figure>", page, re.DOTALL)
    if found is None:
        raise ValueError("the page has no figure")
    styles = "".join(re.findall(r"<style>.*?</style>", page, re.DOTALL))
    margin = "<style>body { margin: 1rem }</style>"
    return f"<!doctype html><meta charset=utf-8>{styles}{margin}<body>{found.group()}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
