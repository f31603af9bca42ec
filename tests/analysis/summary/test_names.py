"""Names of series without what all of them share."""

from orbax_bench_core.analysis.summary import short_names
from orbax_bench_core.analysis.summary.names import varying
from orbax_bench_core.records import Series


def series(*entries):
    return [one for entry in entries for one in Series.all_of(entry)]


def test_a_name_has_what_tells_it_from_others(make_point):
    points = [make_point(options={"a": a}, label=f"a={a},chunks=[1,2],ckpt=w") for a in (1, 2)]
    assert list(short_names(series(*points)).values()) == ["a=1", "a=2"]


def test_arms_differ_by_their_arm(make_point):
    pair = make_point(candidate=make_point(options={"use_ocdbt": False}))
    assert list(short_names(series(pair)).values()) == ["arm=baseline", "arm=candidate"]
    assert set(varying(series(pair))) == {"arm", "use_ocdbt"}


def test_what_varies_has_a_value_for_each(make_point):
    points = [make_point(options={"a": True, "b": 1}), make_point(options={"a": "x", "c": 2})]
    found = {name: list(values.values()) for name, values in varying(series(*points)).items()}
    assert found == {"a": ["true", "x"], "b": ["1", "–"], "c": ["–", "2"]}
