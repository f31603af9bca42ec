"""Documents that people read: elements, three renderers, numbers as text, the look of figures."""

from orbax_bench_core.document.console import print_document
from orbax_bench_core.document.elements import (
    BLANK,
    ByWidth,
    Callout,
    Cell,
    Column,
    Details,
    Document,
    Element,
    Facts,
    Figure,
    Group,
    Heading,
    Items,
    Only,
    Paragraph,
    Role,
    Row,
    Section,
    Span,
    Table,
    Text,
)
from orbax_bench_core.document.figures import shorten
from orbax_bench_core.document.html import to_html
from orbax_bench_core.document.markdown import to_markdown, write_figures
from orbax_bench_core.document.numbers import digits, num_bytes, percent, seconds, table_cell

__all__ = [
    "BLANK",
    "ByWidth",
    "Callout",
    "Cell",
    "Column",
    "Details",
    "Document",
    "Element",
    "Facts",
    "Figure",
    "Group",
    "Heading",
    "Items",
    "Only",
    "Paragraph",
    "Role",
    "Row",
    "Section",
    "Span",
    "Table",
    "Text",
    "digits",
    "num_bytes",
    "percent",
    "print_document",
    "seconds",
    "shorten",
    "table_cell",
    "to_html",
    "to_markdown",
    "write_figures",
]
