"""Rules of the gate: frozen once a block is recorded, and judged by others only as stamped."""

import html
import re

import pytest

from orbax_bench_core.analysis.verdicts import compare_stored, verdicts_document
from orbax_bench_core.config import load_suite
from orbax_bench_core.pages import to_html, to_markdown
from orbax_bench_core.records import Run, RunDirectory
from orbax_bench_core.sweep import expand_here
from tests.support.paired_runs import make_paired_run  # noqa: F401 - fixture
from tests.support.shown import terminal

STAMP = "exploratory: rules changed after the data"
SUITE = """\
suite_name: rules
benchmarks: [{generator: save_restore, options: {}}]
arms: {candidate: {options: {use_ocdbt: false}}}
"""


@pytest.fixture
def begun(tmp_path, make_record):
    """Begins the comparison of a suite, with a block of it recorded or not."""

    def begin(gate="", *, recorded):
        file = tmp_path / "suite.yaml"
        file.write_text(f"{SUITE}{gate}")
        loaded = load_suite(str(file))
        run = RunDirectory(str(tmp_path / "run"))
        info = run.start(loaded, expand_here(loaded))
        (pair,) = info.expansion.pairs
        if recorded:
            fields = {"arm": "baseline", "block": 0, "run_id": info.run_id}
            run.write_record(make_record(pair, 0, times={"save": 0.1}, **fields))
        else:
            run.write_record(make_record(pair, 0, arm="baseline", warmup=True, run_id=info.run_id))
        return file, run

    return begin


def edited(file, gate):
    file.write_text(f"{SUITE}{gate}")
    loaded = load_suite(str(file))
    return loaded, expand_here(loaded)


def test_a_run_says_by_which_rules_it_is_judged(begun):
    _, run = begun("gate: {margin: 0.2}\n", recorded=False)
    info = run.read_info()
    assert info.rules == info.gate.fingerprint
    assert info.order_seed == info.run_id


@pytest.mark.slow
def test_changed_rules_are_refused_with_both_ways_out(orbax_bench, begun):
    file, run = begun("gate: {margin: 0.2}\n", recorded=True)
    before = (run.root / "run.json").read_bytes()
    file.write_text(f"{SUITE}gate: {{margin: 0.3, alpha: 0.05}}\n")
    outcome = orbax_bench("ab", file, "-o", run.root, "--no-lock")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"error: {run.root} was measured for other rules (margin 20 % -> 30 %, alpha 1 % -> 5 %): "
        "rules that are chosen after the data decide nothing. Measure again in another output "
        "directory, or judge what is here by other rules, as an exploration: `orbax-bench compare "
        f"{run.root} --rule margin=0.3 --rule alpha=0.05`\n"
    )
    assert (run.root / "run.json").read_bytes() == before


def test_before_the_first_block_rules_are_replaced(begun):
    file, run = begun("gate: {margin: 0.2}\n", recorded=False)
    info = run.start(*edited(file, "gate: {margin: 0.3, seed: 5}\n"))
    assert info.gate.margin == 0.3
    assert info.rules == info.gate.fingerprint
    assert info.order_seed == "5"


def test_rules_that_say_the_same_in_other_words_go_on(begun):
    file, run = begun("gate: {margin: 0.2}\n", recorded=True)
    seed = run.read_info().seed
    info = run.start(*edited(file, "gate:\n  margin: 20.0e-2\n  alpha: 0.01\n"))
    assert (info.rules, info.seed) == (info.gate.fingerprint, seed)


def test_other_rules_are_an_exploration(orbax_bench, make_paired_run, tmp_path):
    run = make_paired_run(1, 1.1, blocks=10)
    page = tmp_path / "page.html"
    (run.root / "verdicts.json").write_text("{}")
    assert STAMP not in orbax_bench("compare", run.root).out
    outcome = orbax_bench("compare", run.root, "--rule", "margin=0.9", "--html", page)
    assert outcome.code == 4
    assert f"{STAMP} (margin 15 % -> 90 %)" in outcome.out
    assert STAMP in page.read_text()
    assert f"orbax-bench compare {run.root} --rule margin=0.9 --details" in page.read_text()
    assert (run.root / "verdicts.json").read_text() == "{}"
    assert (
        orbax_bench("compare", run.root, "--rule", "margin=0.9", "--allow-inconclusive").code == 4
    )


@pytest.mark.parametrize("points", [1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rule", ["margin=0.9", "tolerance=0.001"])
def test_no_line_of_an_exploration_looks_like_a_verdict(
    make_paired_run, make_point, make_record, make_run, rule, points
):
    pairs = [
        make_point(options={"a": a}, candidate=make_point(options={"a": -a}), label=f"a={a}")
        for a in range(1, points + 1)
    ]
    runs = [make_paired_run(day, 1.1, pair=pair, blocks=10) for day, pair in enumerate(pairs)]
    records = [
        record.model_copy(update={"run_id": "run"}) for run in runs for record in Run(run).records()
    ]
    run = make_run(records, folder="all")
    found = compare_stored(str(run.root), None, [rule])
    document = verdicts_document(found, "out")
    wide, narrow = (terminal(document, width=width, details=True) for width in (200, 80))
    shown = (wide, narrow, to_markdown(document), unfolded(to_html(document)))
    assert STAMP in to_markdown(document)
    assert found.exploratory
    for text in shown:
        assert [found.group() for found in BARE.finditer(text)] == []
        assert ", exploratory" in text
    assert to_markdown(document).count(", exploratory") > points
    assert all(point["exploratory"] for point in found.model_dump(mode="json")["points"])


BARE = re.compile(
    r"[✓✗?] \(?(?:PASS|REGRESSION|INCONCLUSIVE)\b(?!\)?,\s+exploratory).*"
    r"|(?<!Exploratory: )(?:PASS for|REGRESSION of|No verdict on) the typical time.*"
)
"""Words that would look like a verdict if their line were pasted elsewhere."""


def unfolded(page):
    """Returns the text of a page, a block a line."""
    page = re.sub(r"(?s)<(style|script|svg).*?</\1>", "", page)
    page = re.sub(r"</(tr|p|li|h\d|summary|div|title)>", "\n", page.replace("\n", " "))
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("margn=0.3", "`gate` has no key 'margn'; did you mean 'margin'?"),
        ("margin", "expected KEY=VALUE, such as margin=0.3"),
        ("margin=wide", "expected a number, got 'wide'"),
        ("margin=0.01", "margin 0.01 must be larger than tolerance 0.03"),
        ("margin=[", "the value cannot be read"),
        ("metrics=1", "name the operation and its rule"),
        ("metrics.save=1", "expected a key of `gate`, such as margin=0.3 or metrics.save"),
        ("metrics.save.margn=1", "unknown key; did you mean 'margin'?"),
        ("margin.of=1", "expected a key of `gate`"),
        ("looks=[3]", "looks must be even"),
    ],
)
def test_a_wrong_rule_is_explained(orbax_bench, make_paired_run, rule, said):
    outcome = orbax_bench("compare", make_paired_run(1, blocks=1).root, "--rule", rule)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: --rule {rule}: ")
    assert said in outcome.err
