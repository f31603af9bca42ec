"""Run directories that earlier versions wrote: read, judged and finished as they were."""

import csv
import json
import math
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.golden import support
from tests.golden.tables import parquet_of_a_run

VERSIONS = Path(__file__).parents[1] / "data" / "run_directories"
PLAIN = sorted(VERSIONS.glob("*/plain"))
PAIRED = sorted(VERSIONS.glob("*/paired"))


# Defaults of the rules have changed since version 3.
RULES = ("--override", "gate.max_stalls=null", "--override", "gate.max_failures=null")


def ids(folders):
    return [f"{folder.parent.name}_{folder.name}" for folder in folders]


@pytest.fixture(params=[*PLAIN, *PAIRED], ids=ids([*PLAIN, *PAIRED]))
def earlier(request):
    """A run directory as it was written."""
    return request.param


@pytest.fixture
def copied(tmp_path):
    """Copies a run directory to where it was not before."""

    def copy(earlier):
        folder = tmp_path / "moved here" / earlier.name
        shutil.copytree(earlier, folder)
        return folder

    return copy


def contents(folder):
    """What a run measured, by file."""
    files = [file for file in (folder / "records").rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


SAID_ANEW = {"low", "high", "detectable", "more_blocks", "health", "schema_version"}
"""What later versions compute by other rules, and say in other words."""


def without(value, names):
    if isinstance(value, dict):
        return {key: without(inner, names) for key, inner in value.items() if key not in names}
    return [without(inner, names) for inner in value] if isinstance(value, list) else value


def verdicts(folder):
    found = json.loads((folder / "verdicts.json").read_text())
    return without({**found, "judged_at": ""}, SAID_ANEW)


def summary(folder):
    with (folder / "summary.csv").open(newline="") as file:
        return list(csv.DictReader(file))


GONE = {"measured", "advice"}
"""What earlier versions wrote and none does any more: stalls beyond the look, advice in words."""


def holds(found, wanted):
    """Says whether a value says all that another one said; a later version may say more.

    Computed numbers may differ in the last digits, from one processor to the next.
    """
    if isinstance(wanted, dict):
        kept = wanted.keys() - GONE
        return kept <= found.keys() and all(holds(found[key], wanted[key]) for key in kept)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(holds, found, wanted))
    if isinstance(wanted, str) and isinstance(found, list):  # a reason, once a text
        return [each["values"]["said"] for each in found] == [wanted][: len(wanted)]
    if isinstance(wanted, str) and isinstance(found, dict):
        return found["values"]["said"] == wanted
    if isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-9)
    return type(found) is type(wanted) and found == wanted


def test_there_is_one_of_each_kind():
    assert PLAIN
    assert PAIRED


def test_what_is_read_says_all_that_was_written(earlier):
    files = {"run": [earlier / "run.json"], "record": earlier.rglob("host_*.json")}
    files |= {kind: earlier.glob(f"{kind}.json") for kind in ("lineage", "limits", "verdicts")}
    for kind, found in files.items():
        for file in found:
            text = file.read_text()
            said = json.loads(text)
            if kind in ("lineage", "limits", "verdicts"):  # have versions of their own
                del said["schema_version"]
            assert holds(json.loads(support.written_again(kind, text)), said), file


@pytest.mark.slow
def test_its_digests_still_hold(earlier, copied, tmp_path, monkeypatch):
    """But for files that are not kept here."""
    monkeypatch.chdir(tmp_path)
    run = copied(earlier)
    found = json.loads(support.orbax_bench("lineage", run, "--json").out)["findings"]
    there = [each for each in found if (run / each["name"]).is_file()]
    there += [each for each in found if each["what"] in ("records", "config")]
    assert {each["status"] for each in there} == {"unchanged"}
    assert len(there) == 4
    support.said("report", run)
    support.said("lineage", f"{run}/samples.parquet")  # pages of verdicts are not kept here


@pytest.mark.slow
def test_the_report_says_the_same(earlier, copied, golden):
    run = copied(earlier)
    (run / "summary.csv").unlink()
    support.said("report", run)
    assert holds(summary(run), summary(earlier))
    golden(f"read/{earlier.parent.name}_{earlier.name}_samples.txt", parquet_of_a_run(run))


@pytest.mark.slow
@pytest.mark.parametrize("earlier", PLAIN, ids=ids(PLAIN))
def test_a_finished_run_is_not_measured_again(earlier, copied):
    run, before = copied(earlier), contents(earlier)
    info, limits = (run / "run.json").read_bytes(), (run / "limits.json").read_bytes()
    suite = earlier.with_suffix(".yaml")
    outcome = support.orbax_bench("run", suite, "-o", run, "--no-lock")
    assert outcome.code == 0, outcome
    assert contents(run) == before
    assert (run / "limits.json").read_bytes() == limits
    assert not (run / "logs").exists()
    assert holds(summary(run), summary(earlier))
    found, said = json.loads((run / "run.json").read_text()), json.loads(info)
    # The gate has had other defaults since, so its fingerprint is another, and so is the layout.
    other = {name: said[name] for name in ("gate", "rules", "schema_version")}
    assert holds({**found, "suite_file": "plain.yaml", **other}, said)


@pytest.mark.slow
@pytest.mark.parametrize("earlier", PAIRED, ids=ids(PAIRED))
def test_a_finished_comparison_is_judged_again_and_not_measured_again(earlier, copied):
    run, before = copied(earlier), contents(earlier)
    suite = earlier.with_suffix(".yaml")
    rules = RULES if earlier.parent.name == "v3" else ()
    outcome = support.orbax_bench("ab", suite, "-o", run, "--no-lock", *rules)
    assert outcome.code == 0, outcome
    assert contents(run) == before
    assert not (run / "logs").exists()
    # What is said of an interval may be computed otherwise by now; the rules and the word hold.
    found, said = verdicts(run), verdicts(earlier)
    assert (found["word"], found["run_id"]) == (said["word"], said["run_id"])
    assert holds(found["gate"], said["gate"])


@pytest.mark.parametrize("earlier", PAIRED, ids=ids(PAIRED))
def test_its_arms_are_compared(earlier, copied, golden):
    run = copied(earlier)
    found = support.said("compare", run).replace(shlex.quote(str(run)), "RUN")
    golden(f"read/{earlier.parent.name}_{earlier.name}_compare.txt", found)


@pytest.mark.parametrize("earlier", PAIRED, ids=ids(PAIRED))
def test_a_repeat_that_is_lost_is_missed(earlier, copied):
    """The comparison would measure the block again; the verdict has one block less."""
    run = copied(earlier)
    (point,) = (run / "records").iterdir()
    shutil.rmtree(point / "repeat_7")
    outcome = support.orbax_bench("compare", run)
    assert outcome.code == 4, outcome
    assert "1 block" in outcome.out


@pytest.mark.parametrize("earlier", PLAIN, ids=ids(PLAIN))
def test_it_can_be_a_baseline(earlier, copied):
    run = copied(earlier)
    registry = run.parent / "registry"
    named = ("--label", "golden")  # it was measured outside any repository
    support.said("baseline", "capture", registry, run, "--promote", *named)
    found = json.loads(support.said("compare", registry, run, "--json"))
    ratios = [
        operation["verdict"]["ratio"]
        for point in found["points"]
        for operation in point["operations"]
    ]
    assert set(ratios) == {1.0}
    assert len(found["points"]) == 2


@pytest.mark.parametrize("earlier", PLAIN, ids=ids(PLAIN))
@pytest.mark.parametrize("file", ["run.json", "records/*/repeat_0/host_0.json"])
def test_one_from_before_ids_had_names_is_refused(earlier, copied, file):
    run = copied(earlier)
    for found in run.glob(file):
        text = found.read_text()
        found.write_text(re.sub('"schema_version": [34]', '"schema_version": 2', text, count=1))
    outcome = support.orbax_bench("run", earlier.with_suffix(".yaml"), "-o", run, "--no-lock")
    assert outcome.code == 2, outcome
    assert "written by an earlier orbax-bench, whose layout is not read any more" in outcome.err
    assert "measure again in another output directory" in outcome.err
