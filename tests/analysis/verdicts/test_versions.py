"""Versions that differ between arms."""

from orbax_bench_core.analysis.verdicts.paired import version_differences


def record(make_record, arm, **versions):
    return make_record(arm=arm, provenance={"versions": versions})


def test_what_differs_is_named_and_what_is_equal_is_not(make_record):
    records = [
        record(make_record, "baseline", jax="0.9.0", numpy="2.0"),
        record(make_record, "candidate", jax="0.10.2", numpy="2.0"),
    ]
    assert version_differences(records) == ("jax: 0.9.0 in the baseline, 0.10.2 in the candidate",)


def test_one_arm_alone_differs_from_nothing(make_record):
    assert version_differences([record(make_record, "baseline", jax="0.9.0")]) == ()


def test_an_arm_that_changed_on_the_way_shows_both(make_record):
    records = [
        record(make_record, "baseline", jax="1"),
        record(make_record, "baseline", jax="2"),
        record(make_record, "candidate", jax="2"),
    ]
    assert version_differences(records) == ("jax: 1 and 2 in the baseline, 2 in the candidate",)
