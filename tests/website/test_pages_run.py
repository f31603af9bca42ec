"""Commands of pages that no other test runs, as they stand there."""

import json
import re
import shutil
import subprocess

import pytest

from tests.support.blocks import ROOT, blocks_of, commands_of, run_in_shell, write_program

SUITE = """
suite_name: pages
execution: {warmups: 0}
gate: {looks: [10], margin: 4.0}
num_repeats: 2
benchmarks: [{generator: scripted.Scripted, options: {}}]
"""
GIT = ("git", "-c", "user.name=n", "-c", "user.email=e@example.org")


@pytest.fixture
def place(tmp_path):
    """A repository with a suite whose workers measure nothing; commands find `orbax-bench`."""
    write_program(tmp_path / "bin" / "orbax-bench", "-m tests.support.fake_cli")
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "suite.yaml").write_text(SUITE)
    # The code under test is that of the class: a copy in this repository.
    shutil.copy(ROOT / "tests" / "support" / "scripted.py", folder)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a suite"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    return folder


def run(place, command):
    """Runs a command of a page; returns its exit code and all that it said."""
    script = command.replace("/tmp/", f"{place}/")
    done = run_in_shell(script, place, place.parent / "bin", PYTHONPATH=str(ROOT))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.nightly
def test_the_commands_on_verdicts(place):
    """All but `bisect` and `--aa`, which start many workers: tests of theirs do so."""
    *commands, calibrate, foretold = commands_of("docs/verdicts.md")
    assert "calibrate" in calibrate
    assert "--passport" in foretold
    skipped = re.compile(r" bisect | --aa").search
    tomorrow = "orbax-bench ab suite.yaml -o tomorrow --candidate async_enabled=false"
    for command in [tomorrow, *(one for one in commands if not skipped(one))]:
        scripted = command.replace("async_enabled=false", "load_s=0.0201")
        code, said = run(place, scripted)
        assert code == (4 if "--rule" in command else 0), (command, said)
    assert (place / "results" / "verdicts.html").exists()
    assert list((place / "baselines").glob("*/*/*.json"))


@pytest.mark.slow
def test_the_commands_on_overrides_quote_what_may_have_blanks(place):
    """Orbax may be installed in a folder with blanks in its name."""
    *_, block = (one for one in blocks_of("docs/overrides.md") if one.language == "sh")
    python, bench = place.parent / "bin" / "python", place.parent / "bin" / "orbax-bench"
    python.write_text("#!/bin/sh\necho '/a folder/orbax'\n")
    script = place.parent / "script.py"
    script.write_text(
        "import json, sys\n"
        f"open({str(place / 'words.json')!r}, 'w').write(json.dumps(sys.argv[1:]))\n"
    )
    write_program(bench, f'"{script}"')
    python.chmod(0o755)
    code, said = run(place, block.text)
    assert code == 0, said
    words = json.loads((place / "words.json").read_text())
    assert words[:2] == [
        "run",
        "/a folder/orbax/_src/testing/benchmarks/configs/evaluations/model_sizes/llama-8b.yaml",
    ]
    assert words[-1] == "checkpoint_config={model: llama-8b, scale: 0.01}"


@pytest.mark.nightly
@pytest.mark.extended
def test_the_commands_on_lineage(place):
    results, page = commands_of("docs/lineage.md")[:2]
    arms = "orbax-bench ab suite.yaml -o results --candidate load_s=0.0201"
    for command in (arms, results, page):
        code, said = run(place, command)
        assert code == 0, (command, said)
    assert "unchanged" in said
