"""Whose code each command runs, as the page on it says."""

import re

import typer.main

from orbax_bench_core.cli.main import app
from tests.support.blocks import ROOT


def test_the_page_names_every_command():
    page = (ROOT / "docs" / "threats.md").read_text()
    table = page.split("## What each command imports")[1].split("\n## ")[0]
    named = set(re.findall(r"[`]([a-z-]+)", table))
    assert set(typer.main.get_command(app).list_commands(None)) - named == set()
