"""`--override`: values in place of those of a suite file."""

import pytest
import yaml

from orbax_bench_core.config.base import SuiteError
from orbax_bench_core.config.load import parse_suite
from orbax_bench_core.config.override import with_keys, with_overrides

NO_ITEM = "; give a number from 0 to 1, or * for every one"
SUITE = """\
suite_name: s
num_repeats: 20
checkpoint_config:
  spec:
    w: {dtype: float32, shape: [8], sharding: [x]}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 8}}
benchmarks:
- {generator: g, options: {a: 1}}
- {generator: h, options: {}}
"""
PLURAL = """\
suite_name: s
checkpoint_configs: [{model: gpt2}, {model: llama-8b, scale: 0.5}]
benchmarks: [{generator: g, options: {}}]
"""


@pytest.fixture(scope="module")
def apply():
    """Returns the suite that a text and overrides make."""

    def load(*overrides, text=SUITE):
        return parse_suite(with_overrides(text, overrides), "suite.yaml").suite

    return load


@pytest.fixture(scope="module")
def problems():
    """Returns all that is wrong with a text and overrides, as it is printed."""

    def find(*overrides, text=SUITE):
        with pytest.raises(SuiteError) as caught:
            parse_suite(with_overrides(text, overrides, "suite.yaml"), "suite.yaml")
        return [str(problem) for problem in caught.value.problems]

    return find


def test_a_value_inside_a_block_is_read_as_yaml(apply):
    suite = apply("checkpoint_config.spec.w.shape=[16, 4]")
    assert suite.checkpoint_configs[0].spec["w"].shape == (16, 4)


def test_a_block_that_is_missing_is_made(apply):
    assert apply("execution.cache=[warm, cold]").execution.cache == ("warm", "cold")


@pytest.mark.parametrize("path", ["benchmarks.0.options.a", "benchmarks[0].options.a"])
def test_an_item_of_a_list_is_its_number(apply, path):
    assert [entry.options for entry in apply(f"{path}=2").benchmarks] == [{"a": 2}, {}]


def test_the_singular_is_every_item_of_the_plural(apply):
    suite = apply("checkpoint_config.scale=0.1", text=PLURAL)
    assert [one.scale for one in suite.checkpoint_configs] == [0.1, 0.1]


def test_the_singular_given_whole_replaces_the_plural(apply):
    suite = apply("checkpoint_config={model: gpt2, scale: 0.1}", text=PLURAL)
    assert [one.label for one in suite.checkpoint_configs] == ["gpt2@0.1"]


@pytest.mark.parametrize("item", ["0", "*"])
def test_the_plural_reaches_the_only_item_of_the_singular(apply, item):
    suite = apply(f"checkpoint_configs.{item}.random_seed=5")
    assert suite.checkpoint_configs[0].random_seed == 5


def test_null_takes_a_block_away(apply):
    text = f"{SUITE}simdevice: {{device_type: v5p, topology: [2, 2, 1]}}\n"
    assert apply("simdevice=null", text=text).suite_name == "s"


@pytest.mark.parametrize("override", ["a=", "a=null", "benchmark="])
def test_an_unknown_key_without_a_value_is_told(problems, override):
    (problem,) = problems(override)
    assert problem.startswith(f"--override {override}: {override.partition('=')[0]}: unknown key")


def test_the_last_override_of_a_key_counts(apply):
    assert apply("num_repeats=2", "num_repeats=3").num_repeats == 3


def test_a_star_is_every_item_and_its_value_is_not_shared_between_them(apply):
    suite = apply("benchmarks.*.options={b: [1, 2]}", "benchmarks.0.options.b=2")
    assert [entry.options for entry in suite.benchmarks] == [{"b": 2}, {"b": [1, 2]}]


def test_an_overridden_suite_has_the_identity_of_one_written_so(apply):
    written = parse_suite(SUITE.replace("a: 1", "a: 2")).suite
    assert apply("benchmarks.0.options.a=2").identity == written.identity


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("num_repeats=0", "num_repeats: expected greater than 0, got 0"),
        ("checkpoint_config.spec.v.dtype=int8", "checkpoint_config.spec.v.shape: this key is"),
        ("benchmarks.2.options.a=1", f"benchmarks is a list of 2 without item '2'{NO_ITEM}"),
        ("benchmarks.options.a=1", f"benchmarks is a list of 2 without item 'options'{NO_ITEM}"),
        ("suite_name.x=1", "suite_name is 's', which has no keys to set"),
    ],
)
def test_a_bad_value_is_said_to_come_from_the_override(problems, override, message):
    (problem,) = problems(override)
    assert problem.startswith(f"--override {override}: {message}")


def test_a_block_that_an_override_makes_wrong_names_the_override(problems):
    (problem,) = problems("checkpoint_config.model=gpt2")
    assert problem.startswith("suite.yaml:3: checkpoint_config: `spec` and `model` are two sources")
    assert problem.endswith("(with --override checkpoint_config.model=gpt2)")


def test_overrides_in_a_file_are_a_list_of_texts(problems):
    assert problems(text=f"{SUITE}overrides: {{a: 1}}\n") == [
        "suite.yaml:10: overrides: expected a list of KEY.PATH=VALUE, got {'a': 1}"
    ]


@pytest.mark.parametrize("text", ["a: 1\n", "a: 1", "{a: 1}", "a: 1\n...\n", "---\na: 1 # c\n"])
def test_any_form_of_mapping_takes_keys(text):
    assert yaml.safe_load(with_keys(text, {"b": {"c": [True, None]}})) == {
        "a": 1,
        "b": {"c": [True, None]},
    }


def test_a_key_that_is_there_is_not_overridden():
    with pytest.raises(SuiteError, match=r"f.yaml:2: b: given in the file as well"):
        with_keys("a: 1\nb: 2\n", {"b": 3}, "f.yaml")


def test_a_list_takes_no_keys():
    with pytest.raises(SuiteError, match="a suite is a mapping"):
        with_keys("- a\n", {"b": 1})
