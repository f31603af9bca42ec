"""Suites that are too large, too deep or not what they say: one short message, in a moment."""

import pytest

from orbax_bench_core.config import SuiteError, load_suite
from orbax_bench_core.config.source import Source

WHOLE = "suite_name: s\nbenchmarks:\n- {generator: save_restore, options: {}}\n"
LEVELS = "\n".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
BOMB = f"{WHOLE}x:\n  a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n{LEVELS}\n"
NESTED = f"- &a0 [{', '.join('1' * 9)}]\n" + "\n".join(
    f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 5)
)


def said(tmp_path, text):
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(SuiteError) as caught:
        load_suite(str(file))
    message = str(caught.value)
    assert len(message) < 2_000
    return message.replace(str(tmp_path), "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(BOMB, "s.yaml:10: x.a5: more than 100,000 keys and values", id="aliases"),
        pytest.param(
            f"{WHOLE}#{'x' * 5_000_000}", "more than 1,000,000 characters", id="characters"
        ),
        pytest.param(
            WHOLE + "".join(f"k{n}: 1\n" for n in range(60_000)),
            "s.yaml: more than 100,000 keys and values",
            id="keys",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            f"x: {'[' * 1500}{']' * 1500}",
            "too deep in each other",
            id="lists",
            marks=pytest.mark.slow,
        ),
        pytest.param(f"x: {'{a: ' * 1500}1{'}' * 1500}", "too deep in each other", id="mappings"),
        pytest.param(f"{'- ' * 1_500}1", "too deep in each other", id="blocks"),
        pytest.param(f"{WHOLE}num_repeats: 1000000000000\n", "s.yaml:4: num_repeats", id="repeats"),
        pytest.param(
            f"{WHOLE}num_repeats: !!bool abc\n",
            "s.yaml:4: num_repeats: 'abc' cannot be read as a YAML bool",
            id="bool",
        ),
        pytest.param(
            f"{WHOLE}num_repeats: !!timestamp abc\n",
            "s.yaml:4: num_repeats: 'abc' cannot be read as a YAML timestamp",
            id="time",
        ),
        pytest.param(f"{WHOLE}num_repeats: {'9' * 5000}\n", "s.yaml:4: num_repeats", id="digits"),
        pytest.param(
            f"{WHOLE}num_repeats: 0x{'f' * 5000}\n",
            "got a int of more digits than can be shown",
            id="number that cannot be shown",
        ),
        pytest.param('suite_name: "\\ud800"\n', "s.yaml:1: suite_name", id="surrogate"),
        pytest.param(
            f"{WHOLE}execution: {{processes: 1000000}}\n",
            "s.yaml:4: execution.processes[0]",
            id="p",
        ),
        pytest.param(f"{WHOLE}num_repeats:\n{NESTED}\n", "got [[1, 1, 1", id="value that is long"),
        pytest.param(
            f"{WHOLE}checkpoint_config: {{spec: {{w: {{dtype: int8, shape: [1{'0' * 400}]}}}}}}\n",
            "s.yaml:4: checkpoint_config.spec.w.shape[0]: expected less than",
            id="dimension",
        ),
        pytest.param(
            f"{WHOLE}checkpoint_config: {{spec: {{w: {{dtype: int8, shape: [{2**62}, 4]}}}}}}\n",
            "an array of more than 2^63 bytes, which no library can address",
            id="array",
        ),
    ],
)
def test_it_is_one_short_message_that_names_the_place(tmp_path, text, message):
    assert message in said(tmp_path, text)


def test_of_many_mistakes_the_first_are_said_and_the_others_counted(tmp_path):
    text = WHOLE + "".join(f"k{n}: 1\n" for n in range(300))
    found = said(tmp_path, text)
    assert "s.yaml:4: k0: unknown key" in found
    assert found.endswith(" more")


@pytest.mark.parametrize("text", ["a: [1\n", "a: 'b\n", "a: b: c\n", "\tx: 1", "x: \x00"])
def test_both_parsers_have_the_same_messages(text, monkeypatch):
    def message():
        with pytest.raises(SuiteError) as caught:
            Source(text)
        return str(caught.value)

    quick = message()
    monkeypatch.delattr("yaml.CSafeLoader", raising=False)
    assert message() == quick
