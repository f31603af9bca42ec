"""Credentials in the addresses of a suite, which nothing keeps."""

import pytest

from orbax_bench_core.config import SuiteError, parse_suite

SUITE = """\
suite_name: s
environments:
- {{name: new, requirements: ["{given}"]}}
benchmarks:
- {{generator: save_restore, options: {{}}}}
"""


def test_a_suite_that_would_keep_them_is_refused_and_not_repeated():
    given = "orbax-checkpoint @ git+https://planted@github.com/google/orbax"
    with pytest.raises(SuiteError) as caught:
        parse_suite(SUITE.format(given=given), "s.yaml")
    assert "s.yaml:2: environments" in str(caught.value)
    assert "git+https://***@github.com/google/orbax has credentials" in str(caught.value)
    assert "planted" not in str(caught.value)


def test_a_variable_of_the_environment_stands_for_them():
    given = "orbax-checkpoint @ git+https://${TOKEN}@github.com/google/orbax"
    suite = parse_suite(SUITE.format(given=given), "s.yaml").suite
    assert suite.environments[0].requirements == (given,)


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("  options: {} # s3://AKIA:planted@bucket\n", "s.yaml:3: an address with credentials"),
        ("  options: {x: https://h/x?sig=planted}\n", "s.yaml:3: an address with credentials"),
        (
            '  options: {x: [1, "https:\\x2f/h/x?X-Goog-Signature=planted"]}\n',
            "s.yaml:3: benchmarks[0].options.x[1]: an address with credentials",
        ),
        (
            "  options: {x: 1}\noverrides: ['benchmarks[*].options.x=s3://u:planted@h/x']\n",
            "s.yaml:4: an address",
        ),
    ],
)
def test_nothing_of_a_suite_has_them_for_a_run_keeps_all_of_it(more, place):
    whole = "benchmarks:\n- generator: save_restore\n" + more + "suite_name: s\n"
    with pytest.raises(SuiteError) as caught:
        parse_suite(whole, "s.yaml")
    assert place in str(caught.value)
    assert "planted" not in str(caught.value)
    assert "~/.netrc" in str(caught.value)
