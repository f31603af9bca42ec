"""Look of all figures, and their rendering: SVG that follows light and dark, or PNG."""

from __future__ import annotations

import contextlib
import hashlib
import html
import io
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.document.compact import USUAL, compact
from orbax_bench_core.errors import presentable, redacted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE: Final = "#ffffff"
INK: Final = "#1b1f24"
DIM: Final = "#666677"
LINE: Final = "#d8dde3"
BAR: Final = "#3a78c2"
BASELINE: Final = "#8a5a2b"
CANDIDATE: Final = BAR
REGRESSION: Final = "#c0392b"
PASS: Final = "#2a7f45"  # noqa: S105
INCONCLUSIVE: Final = "#946100"

VARIABLES: Final = {
    PAGE: "--page",
    INK: "--ink",
    DIM: "--dim",
    LINE: "--line",
    BAR: "--bar",
    BASELINE: "--baseline",
    REGRESSION: "--regression",
    PASS: "--pass",
    INCONCLUSIVE: "--inconclusive",
}
"""The CSS variable that a page sets in place of each colour, for light and dark."""

SERIES: Final = {
    "--c1": ("#3a78c2", "#6aa5e8"),
    "--c2": ("#b85c00", "#e8934a"),
    "--c3": ("#2a7f45", "#5fc27e"),
    "--c4": ("#8e5bb5", "#bb8fe0"),
    "--c5": ("#a33b5e", "#e0799a"),
    "--c6": ("#00808a", "#4cc0c9"),
    "--c7": ("#7a6a00", "#c9b53f"),
}
"""Variables of a series of colours that can be told apart, with their light and dark values."""

DARK: Final = {
    "--page": "#14181d",
    "--ink": "#e6e9ee",
    "--dim": "#98a2ae",
    "--line": "#333b45",
    "--bar": "#6aa5e8",
    "--baseline": "#d19a66",
    "--regression": "#ff7b6b",
    "--pass": "#5fc27e",
    "--inconclusive": "#e0a83a",
}
"""Values of the variables on a dark page."""


# Its type is a list of all keys of one version of matplotlib.
_STYLE: Final[Any] = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelcolor": DIM,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.color": LINE,
    "text.color": INK,
    # A name with two dollar signs is no formula.
    "text.parse_math": False,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": DIM,
    "ytick.labelcolor": DIM,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 1.6,
    "legend.labelcolor": DIM,
    "lines.markersize": 4.5,
    "figure.facecolor": "none",
    # Text stays text: it can be searched, read aloud and set in the font of the page.
    "svg.fonttype": "none",
    "svg.hashsalt": "orbax-bench",
}
_DPI: Final = 144

_WIDE: Final = 600
"""Pixels from which on a figure does not shrink as far as a phone's page would have it."""

_LEAST: Final = 0.65


def variables(scheme: str) -> str:
    """Returns the colours of a scheme, `light` or `dark`, as declarations of CSS variables."""
    light = {variable: colour for colour, variable in VARIABLES.items()}
    chosen = dict(DARK if scheme == "dark" else light)
    chosen |= {variable: pair[scheme == "dark"] for variable, pair in SERIES.items()}
    return " ".join(f"{variable}: {colour};" for variable, colour in chosen.items())


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Sets the look for figures that are made inside, and for nothing else.

    A character that the fonts lack is drawn as a box, without a warning: names are the user's.
    """
    import matplotlib as mpl

    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def new_figure(width: float, height: float, *, fitted: bool = True) -> Figure:
    """Returns an empty figure; to be called, and drawn on, inside `style`."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained" if fitted else None)


def svg(figure: Figure, *, title: str = "") -> str:
    """Returns a figure as an `svg` element to be put into a page, as wide as there is room.

    Its colours are the variables of the page (`VARIABLES`, `SERIES`). It refers to nothing outside,
    and its ids differ from those of other figures on the page. `title` says what it shows to those
    who cannot see it.
    """
    file = io.StringIO()
    with style():
        figure.savefig(file, format="svg", metadata={"Date": None})
    drawn = file.getvalue()
    drawn = drawn[drawn.index("<svg") :].strip()
    # A style element would rule the whole page, and metadata name addresses.
    drawn = re.sub(r"<(metadata|style)\b.*?</\1>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"\s*\n\s*", "\n", drawn)
    drawn = re.sub(r"(font: [^;\"]*?px) [^;\"]*", r"\1 system-ui, sans-serif", drawn)
    drawn = re.sub(r"font-family: [^;\"]*", "font-family: system-ui, sans-serif", drawn)
    series = {light: variable for variable, (light, _) in SERIES.items()}
    for colour, variable in {**series, **VARIABLES}.items():
        drawn = drawn.replace(f": {colour}", f": var({variable})")
    return _entitled(_scoped(compact(drawn), title), title)


def png(figure: Figure) -> bytes:
    """Returns a figure as a PNG file on a white page."""
    file = io.BytesIO()
    with style():
        figure.savefig(file, format="png", dpi=_DPI, facecolor="white", metadata={"Software": None})
    return file.getvalue()


def label(text: str, longest: int = 40) -> str:
    """Returns a user's name as a label: printable, on one line, at most `longest` characters."""
    visible = "".join(char if char.isprintable() else " " for char in redacted(text))
    return shorten(" ".join(visible.split()), longest)


def shorten(text: str, longest: int) -> str:
    """Returns text with its middle left out where it is longer than `longest` characters."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def _scoped(drawn: str, title: str) -> str:
    """Returns an SVG whose ids, of which only those that are referred to stay, are its own."""
    referred = set(re.findall(r'="(?:url\()?#([^")]+)', drawn))
    scope = "f" + hashlib.sha256(f"{title}{drawn}".encode()).hexdigest()[:7]

    def renamed(match: re.Match[str]) -> str:
        return f' id="{scope}-{match[1]}"' if match[1] in referred else ""

    drawn = re.sub(r'\sid="([^"]+)"', renamed, drawn)
    return re.sub(r'="(url\()?#', rf'="\g<1>#{scope}-', drawn)


def _entitled(drawn: str, title: str) -> str:
    """Returns an SVG that has a title, or is hidden from those who would need one."""
    opening, rest = drawn.split(">", 1)
    # Sizes in points would keep it from shrinking on a narrow page; the view box has the shape.
    width = re.search(r'width="([\d.]+)pt"', opening)
    opening = re.sub(r'\s(?:width|height)="[\d.]+pt"', "", opening)
    pixels = 0.0 if width is None else float(width[1]) * 96 / 72
    limit = f"; max-width: {pixels:.0f}px" if pixels else ""
    # Labels of a wide figure could not be read on a phone: it is moved sideways in its own box.
    limit += f"; --least: {_LEAST * pixels:.0f}px" if pixels > _WIDE else ""
    opening += f' style="width: 100%{limit}; stroke-linejoin: round; {USUAL}"'
    if not title:
        return f'{opening} aria-hidden="true">{rest}'
    told = html.escape(presentable(title))
    return f'{opening} role="img" aria-label="{told}">\n <title>{told}</title>{rest}'
