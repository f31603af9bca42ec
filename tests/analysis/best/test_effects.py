"""Main effects and pairs, estimated round by round."""

import numpy as np
import pytest

from orbax_bench_core.analysis.best import FactorialLayout, analyse, best

TWO = {"use_ocdbt": (True, False), "use_compression": (True, False)}
THREE = {**TWO, "use_zarr3": (True, False)}


def effects_of(folder):
    (case,) = best(folder).cases
    return case.effects


def holds(contrast, truth):
    return contrast.low < truth < contrast.high


def test_effects_are_factors_against_what_orbax_does(sweep):
    folder = sweep(
        TWO, lambda o: (1.0 if o["use_ocdbt"] else 0.8) * (2 - (not o["use_compression"]))
    )
    ocdbt, compression = effects_of(folder).main
    assert (ocdbt.values, ocdbt.against) == ((False,), (True,))
    assert holds(ocdbt, 0.8)
    assert holds(compression, 0.5)
    assert ocdbt.matters


def test_an_option_of_three_values_has_two_effects(sweep):
    chunks = {None: 1.0, 1024: 1.3, 4096: 1.1}
    folder = sweep({"chunk_byte_size": tuple(chunks)}, lambda o: chunks[o["chunk_byte_size"]])
    first, second = effects_of(folder).main
    assert (first.values, first.against) == ((1024,), (None,))
    assert holds(first, 1.3)
    assert holds(second, 1.1)


def test_a_pair_says_how_one_effect_changes_with_the_other(sweep):
    def seconds(o):
        return 1.5 if not o["use_ocdbt"] and not o["use_compression"] else 1.0

    (pair,) = effects_of(sweep(TWO, seconds)).interactions
    assert pair.options == ("use_ocdbt", "use_compression")
    assert holds(pair, 1.5)
    assert pair.matters


def test_without_all_combinations_there_are_main_effects_and_a_reason(sweep):
    folder = sweep(
        THREE, lambda o: 2.0 - o["use_ocdbt"], only=lambda o: o["use_ocdbt"] or o["use_zarr3"]
    )
    found = effects_of(folder)
    assert found.interactions == ()
    assert holds(found.main[0], 2.0)
    assert any("pairs" in line for line in found.unknown)


def test_options_that_vary_together_cannot_be_told_apart(sweep):
    folder = sweep(TWO, lambda _: 1.0, only=lambda o: o["use_ocdbt"] == o["use_compression"])
    found = effects_of(folder)
    assert found.main == ()
    assert any("use_ocdbt does not vary on its own" in line for line in found.unknown)


def test_one_round_tells_no_effect(sweep):
    found = effects_of(sweep(TWO, lambda _: 1.0, rounds=1))
    assert found.main == ()
    assert "2 rounds" in found.unknown[0]


def test_the_fit_is_used_where_all_was_measured_and_it_holds(sweep):
    found = effects_of(sweep(THREE, lambda o: 1.0 + o["use_ocdbt"], rounds=8))
    assert found.used
    assert len(found.fitted) == 8


def test_the_means_count_where_three_options_interact(sweep):
    folder = sweep(THREE, lambda o: 1.0 if all(o[name] for name in THREE) else 1.5, rounds=8)
    found = effects_of(folder)
    assert not found.used
    assert "lack of fit" in found.why


def test_two_options_need_no_fit(sweep):
    found = effects_of(sweep(TWO, lambda _: 1.0))
    assert not found.used
    assert "the means are the fit" in found.why


def test_the_fit_is_not_used_when_a_point_was_not_measured(sweep):
    folder = sweep(
        {**THREE, "use_replica_parallel": (True, False)},
        lambda o: 1.0 + o["use_ocdbt"],
        rounds=6,
        of=lambda o, _: {"status": "failed", "times": {}} if not any(o[n] for n in THREE) else {},
    )
    found = effects_of(folder)
    assert found.fitted
    assert not found.used


def test_what_never_varies_has_no_effect():
    layout = FactorialLayout(levels={"a": (0, 1)}, rows=((0,), (1,)))
    (contrast,) = analyse(layout, np.zeros((3, 2))).effects
    assert contrast.ratio == pytest.approx(1.0)
    assert not contrast.matters
