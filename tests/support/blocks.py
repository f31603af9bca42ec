"""Code blocks of Markdown pages, and their commands."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import plain_environment

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block; `title` is the file that a reader is told to write."""

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def commands(self):
        """The commands of a shell block, without comments, continued lines joined."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.strip() and not line.startswith("#")]

    @property
    def name(self):
        return f"{self.page}:{self.line}"


def blocks_of(page):
    """Returns the blocks of a page, given by its path in the checkout."""
    text = (ROOT / page).read_text()
    return [
        Block(
            page=str(page),
            line=text[: found.start()].count("\n") + 1,
            language=found.group(1),
            title=next(iter(re.findall(r'title="([^"]+)"', found.group(2))), ""),
            text=found.group(3),
        )
        for found in _BLOCK.finditer(text)
    ]


def commands_of(page):
    """Returns the commands of all shell blocks of a page."""
    return [
        command for block in blocks_of(page) if block.language == "sh" for command in block.commands
    ]


def write_program(file, words):
    """Makes a file a program that runs Python with some words, such as `-m module`."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
    file.chmod(0o755)


def run_in_shell(script, folder, programs, **more):
    """Runs a script in a folder, with the programs of another folder before all others."""
    path = f"{programs}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=plain_environment(PATH=path, **more),
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )


def words_of(command):
    """Returns the words of a command up to a pipe or redirection, without variables before it."""
    if re.match(r"\w+=\$\(", command):
        return []  # a variable takes what another program prints
    lexer = shlex.shlex(re.sub(r"\$\([^)]*\)", "0", command), posix=True, punctuation_chars="|>;&")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words = []
    for word in lexer:
        if set(word) <= set("|>;&"):
            break
        words.append(word)
    while words and re.match(r"^[A-Z_]+=", words[0]):
        words.pop(0)
    return words
