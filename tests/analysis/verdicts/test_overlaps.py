"""Verdicts on pairs that were measured beside each other."""

import datetime

import pytest

from orbax_bench_core.analysis.verdicts.paired import judge_run
from orbax_bench_core.sweep import Pair

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(("apart_s", "beside"), [(0, True), (100, False)])
def test_a_note_says_that_pairs_shared_their_machine(
    make_record, make_point, make_run, apart_s, beside
):
    records = []
    for number in range(2):
        point = make_point(options={"number": number})
        pair = Pair(baseline=point, candidate=point)
        for index, arm in enumerate(("baseline", "candidate")):
            record = make_record(
                pair,
                index,
                times={"save": 1.0},
                arm=arm,
                block=0,
                started_at=NOON + datetime.timedelta(seconds=number * apart_s + 2 * index),
                worker=f"a:{number}:1",
                provenance={"host": {"name": "a"}},
            )
            records.append(record)
    report = judge_run(make_run(records))
    assert any("4 repeats of 4 arms were not alone" in note for note in report.notes) == beside
