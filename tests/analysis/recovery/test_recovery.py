"""Summary of recovery drills, from their records."""

import json
import shutil
from pathlib import Path

import pytest

from orbax_bench_core.analysis.recovery import recovery_document, recovery_of
from orbax_bench_core.analysis.verdicts import judge_run
from orbax_bench_core.answers import RECOVERY
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import exit_code
from orbax_bench_core.experiments import Drills
from orbax_bench_core.measure import PEERS_NOTICE, STEPS_LOST, UNCOMMITTED, Sample
from orbax_bench_core.pages import to_markdown
from orbax_bench_core.publishing import publish_answer
from orbax_bench_core.records import ErrorInfo, Run
from tests.support.shown import assert_tells, terminal


def document_of(found):
    return recovery_document(found, "out")


SECONDS = {"notice": 0.1, "start": 2.0, "restore": 0.5, "first_step": 1.4}


@pytest.fixture
def make_drill(make_record):
    def make(repeat=0, *, lost=3, left=0, peers=None, verified="saved", of=None, **seconds):
        times = {**SECONDS, **seconds}
        times["recovery"] = sum(times.values())
        state = {"num_bytes": 8, "digest": {}, "verified": verified}
        record = make_record(repeat=repeat, times=times, state=state, **(of or {}))
        extra = [
            Sample("recovery", 0, STEPS_LOST.name, lost, "count"),
            Sample("recovery", 0, UNCOMMITTED.name, left, "count"),
        ]
        if peers is not None:
            extra.append(Sample("recovery", 0, PEERS_NOTICE.name, peers, "s"))
        return record.model_copy(update={"samples": (*record.samples, *extra)})

    return make


@pytest.fixture
def make_crash(make_record):
    def make(repeat=0):
        error = ErrorInfo(type="VerificationError", message="w differs")
        return make_record(repeat=repeat, status="failed", error=error)

    return make


@pytest.fixture
def summarize(make_run):
    def call(*records, added=None, folder="run"):
        return recovery_of(Run(make_run(records, folder=folder)), added)

    return call


def test_phases_are_medians_over_drills_and_their_sum(summarize, make_drill):
    found = summarize(make_drill(start=1.0), make_drill(1, start=3.0), make_drill(2, start=9.0))
    (series,) = found.series
    assert [phase.phase for phase in series.phases] == [*SECONDS, "recovery"]
    start, total = series.phase("start"), series.phase("recovery")
    assert (start.median, start.fastest, start.slowest, start.n) == (3.0, 1.0, 9.0, 3)
    assert total.median == pytest.approx(5.0)
    assert (series.drills, series.recovered, series.verified) == (3, 3, True)


def test_fewer_than_six_drills_have_no_interval(summarize, make_drill):
    two = summarize(*(make_drill(number, start=1.0 + number) for number in range(2)))
    start = two.series[0].phase("start")
    assert (start.low, start.high) == (None, None)
    six = summarize(*(make_drill(number, start=1.0 + number) for number in range(6)), folder="six")
    start = six.series[0].phase("start")
    assert (start.low, start.high) == (1.0, 6.0)
    page = to_markdown(document_of(six))
    assert (
        "| `start` | new processes, until JAX is up | 6 | 3.5 s | 1 s – 6 s | 1 s – 6 s |" in page
    ), page


def drills_of_arms(make_run, make_point, make_drill):
    pair = make_point(candidate=make_point(options={"use_ocdbt": False}))
    return make_run(
        [
            make_drill(
                2 * number + side, start=2.0 + side, of={"point": pair, "arm": arm, "block": number}
            )
            for number in range(10)
            for side, arm in enumerate(("baseline", "candidate"))
        ]
    )


def test_every_number_is_told(summarize, make_drill, make_crash, make_run, make_point):
    drills = [make_drill(number, left=1, peers=6.3, start=1.0 + number) for number in range(6)]
    assert_tells(summarize(*drills, added={"start": 60.0, "notice": 5.0}), document_of)
    several = [
        each.model_copy(
            update={
                "point": make_point(options={"a": n}, label=f"a={n}"),
                "point_id": make_point(options={"a": n}, label=f"a={n}").id,
            }
        )
        for n in range(5)
        for each in drills
    ]
    assert_tells(summarize(*several, make_crash(6), folder="several"), document_of)
    assert_tells(recovery_of(Run(drills_of_arms(make_run, make_point, make_drill))), document_of)


def test_a_recovery_of_version_1_is_read_and_says_its_reason(make_run, make_point, make_drill):
    run = drills_of_arms(make_run, make_point, make_drill)
    content = {**recovery_of(Run(run)).model_dump(mode="json"), "schema_version": 1}
    content["verdicts"][0]["reason"] = "no load"
    (run.root / RECOVERY.file).write_text(json.dumps(content))
    assert "; no load; " in RECOVERY.parts.headline(RECOVERY.read(run)).text


def test_arms_end_alike_when_measured_and_when_judged_anew(make_run, make_point, make_drill):
    """A copy among the records, which is left out, makes either incomplete."""
    pair = make_point(candidate=make_point(options={"use_ocdbt": False}))
    records = [
        make_drill(2 * number + side, of={"point": pair, "arm": arm, "block": number})
        for number in range(10)
        for side, arm in enumerate(("baseline", "candidate"))
    ]
    run = make_run(records)
    (record, *_) = Path(run.root).glob("records/*/repeat_0*/*.json")
    shutil.copy(record, record.with_name("host_7.json"))
    anew = Drills().conclude(run)
    drills = Drills()
    drills.verdicts = judge_run(run)
    measured = drills.conclude(run)
    assert measured.verdicts.left_out
    assert exit_code(anew.outcome) == exit_code(measured.outcome) == 1


def test_what_was_lost_and_left_is_kept_of_each_drill(summarize, make_drill):
    found = summarize(make_drill(lost=3, left=1), make_drill(1, lost=17, peers=6.3))
    (series,) = found.series
    assert (series.steps_lost, series.uncommitted, series.peers_s) == ((3, 17), (1, 0), (6.3,))
    page = to_markdown(document_of(found))
    assert "lost 10 steps in the median, at most 17 (each drill: 3, 17). 1 of 2 kills left" in page
    assert "the other processes noticed after 6.3 s" in page


def test_a_drill_that_failed_did_not_come_back(summarize, make_drill, make_crash):
    found = summarize(make_drill(), make_crash(1))
    (series,) = found.series
    assert (series.drills, series.recovered) == (2, 1)
    brief = terminal(document_of(found))
    assert "✗ NOT BACK: 1 of 2 drills came back; VerificationError: w differs\n" in brief
    assert brief.endswith("\nNext: orbax-bench report out\n")


def test_without_verification_it_only_did_not_crash(summarize, make_drill):
    found = summarize(make_drill(verified="none"))
    assert not found.series[0].verified
    assert "? UNVERIFIED: after 4 s" in to_markdown(document_of(found))


def test_seconds_that_were_given_stand_beside_what_was_measured(summarize, make_drill):
    found = summarize(make_drill(), added={"start": 60.0})
    start, total = (found.series[0].phase(name) for name in ("start", "recovery"))
    assert (start.median, start.total) == (2.0, 62.0)
    assert total.total == pytest.approx(64.0)
    brief = terminal(document_of(found))
    assert "✓ RECOVERED: after 64 s, 60 s of it given, most of it start (62 s); 1 of 1" in brief
    assert "\nNext: orbax-bench goodput --recovery 64s " in brief


def test_a_run_without_a_drill_is_refused(summarize, make_record):
    with pytest.raises(UserError, match=r"holds no drill.*training_job"):
        summarize(make_record(times={"save": 1.0}))


@pytest.mark.slow
def test_three_files_are_written(make_run, make_drill):
    run = make_run([make_drill()])
    publish_answer(run, RECOVERY, added={"notice": 5.0})
    assert "given" in (run.root / "recovery.md").read_text()
    assert "<svg" in (run.root / "recovery.html").read_text()
    assert '"added": 5.0' in (run.root / "recovery.json").read_text()
