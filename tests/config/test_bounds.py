"""Suites that are too large, too deep or not what they say: one short message, in a moment."""

import time

import pytest

from orbax_bench_core.config import SuiteError, load_suite
from orbax_bench_core.config.source import SuiteSource

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
            "s.yaml:4: num_repeats: a number of 5,002 characters; the longest has 1,000",
            id="number of many digits",
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
            f"{WHOLE}checkpoint_config: {{spec: {{w: {{dtype: int8, shape: [{2**56}, 16]}}}}}}\n",
            "an array of more than 2^59 bytes, which XLA cannot address",
            id="array",
        ),
        pytest.param(
            f"{WHOLE}checkpoint_config: {{spec: {{w: {{dtype: int4, shape: [{2**59}, 0, 4]}}}}}}\n",
            "an array of more than 2^59 bytes, which XLA cannot address",
            id="empty array",
        ),
        pytest.param(
            f"{WHOLE}checkpoint_config: {{spec: {'{a: ' * 110}int{'}' * 110}}}\n",
            "s.yaml:4: checkpoint_config: brackets or blocks too deep in each other: more than 100",
            id="tree",
        ),
        pytest.param(
            f"{WHOLE}num_repeats: {':'.join(['59'] * 100_000)}\n",
            "s.yaml:4: num_repeats: a number of 299,999 characters",
            id="number of many parts",
        ),
        pytest.param(
            f"{WHOLE}num_repeats: 1:30\n",
            "s.yaml:4: num_repeats: '1:30' is a number in base 60 for YAML; write it in base 10",
            id="number in base 60",
        ),
        pytest.param(
            f"{WHOLE}overrides: ['num_repeats=010']\n",
            "--override num_repeats=010: the value cannot be read: '010' is a number in base 8",
            id="override in base 8",
        ),
        pytest.param(
            f"{WHOLE}checkpoint_config: {{random_seed: 0x{'f' * 500}}}\n",
            "s.yaml:4: checkpoint_config.random_seed: expected less than or equal to 9223372036854",
            id="seed of values",
        ),
        pytest.param(
            f"{WHOLE}execution: {{seed: 0x{'f' * 500}}}\n",
            "s.yaml:4: execution.seed: expected less than or equal to 9223372036854775807",
            id="seed of the order",
        ),
        pytest.param(
            f"{WHOLE}execution: {{warmups: 1000000000000}}\n",
            "s.yaml:4: execution.warmups: expected less than or equal to 100000",
            id="warm-ups",
        ),
        pytest.param(
            f"{WHOLE}execution: {{retries: 1000000000000}}\n",
            "s.yaml:4: execution.retries: expected less than or equal to 1000",
            id="retries",
        ),
        pytest.param(
            f"{WHOLE}execution: {{timeout_s: .inf}}\n",
            "s.yaml:4: execution.timeout_s: expected less than or equal to 31536000",
            id="seconds",
        ),
        pytest.param(
            f"{WHOLE}mesh_config: {{mesh_axes: [x], ici_parallelism: {{x: 1{'0' * 15}}}}}\n",
            "s.yaml:4: mesh_config.ici_parallelism.x: expected less than or equal to 1000000",
            id="axis",
        ),
        pytest.param(
            f"{WHOLE}mesh_config: {{mesh_axes: [x, y], ici_parallelism: {{x: 10000, y: 10000}}}}\n",
            "s.yaml:4: mesh_config: a mesh of 100,000,000 devices; one may have 1,000,000",
            id="mesh",
        ),
        pytest.param(
            WHOLE.replace(": s\n", f": {'s' * 2_000}\n"),
            "s.yaml:1: suite_name: expected text of at most 1000 characters",
            id="name",
        ),
        pytest.param(
            f"{WHOLE}overrides: ['num_repeats=!!bool abc']\n",
            "--override num_repeats=!!bool abc: the value cannot be read: 'abc' cannot be read as",
            id="override that is none",
        ),
        pytest.param(
            f"{WHOLE}overrides: ['num_repeats={'9' * 5_000}']\n",
            "the value cannot be read: a number of 5,000 characters",
            id="override of many digits",
        ),
        pytest.param(
            f"{WHOLE}overrides: ['{'.'.join('a' * 20_000)}=1']\n",
            "a path of more than 100 keys",
            id="override of a long path",
        ),
        pytest.param(
            f"{WHOLE}overrides: ['storage=[{'a, ' * 110_000}]']\n",
            "more than 100,000 keys and values",
            id="override of many values",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            f"{WHOLE}storage: [{'a, ' * 50}]\noverrides: ['storage[*]=[{'a, ' * 3_000}]']\n",
            "more than 100,000 keys and values are set",
            id="override of many places",
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
            SuiteSource(text)
        return str(caught.value)

    quick = message()
    monkeypatch.delattr("yaml.CSafeLoader", raising=False)
    assert message() == quick


@pytest.mark.slow
def test_a_mistake_at_the_end_of_a_long_text_is_said_in_a_moment(tmp_path):
    began = time.process_time()
    assert "s.yaml:5: the text ends within brackets" in said(
        tmp_path, f"{WHOLE}storage: [{'ab, ' * 90_000}"
    )
    assert time.process_time() - began < 60


def test_a_long_message_keeps_its_end():
    text = str(SuiteError(f"{'x' * 10_000}: do this"))
    assert text.startswith("x" * 1_000)
    assert text.endswith(": do this")
    assert len(text) < 2_000
