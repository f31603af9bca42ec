"""Messages of values of another type, and of keys at another place."""

import pytest

OF_AN_ARM = "environment, generator, mesh_config, options, processes, storage"
OF_THE_GATE = (
    "alpha, draws, family, lives, looks, margin, max_stalls, metrics, min_effect_s, "
    "operations_per_life, pass_alpha, primary, seed, tolerance"
)
OF_A_CHECKPOINT = (
    "dtypes, load_with_colocated_python, model, name, nnx, optimizer, path, random_seed, scale, "
    "sharding_config_path, spec"
)
PACKAGES = (
    "packages are the `requirements` of an item of `environments`, which an arm names as its "
    "`environment`"
)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("execution: {durable: yess}", "expected true or false, got 'yess'"),
        ("execution: {durable: 1}", "expected true or false, got 1"),
        ("execution: {warmups: many}", "expected a whole number, got 'many'"),
        ("execution: {warmups: 1.5}", "expected a whole number, got 1.5"),
        ("execution: {warmups: '3'}", "expected a whole number, got '3', which is text; write 3"),
        ("execution: {warmups: yes}", "expected a whole number, got true"),
        (
            "execution: {warmups: }",
            "expected a whole number, got null; leave the key out for what it is by default",
        ),
        ("execution: {timeout_s: 1h}", "expected a number, got '1h'"),
        (
            "execution: {timeout_s: 1e3}",
            "expected a number, got '1e3', which is text; write 1000.0",
        ),
        ("execution: {timeout_s: '900'}", "expected a number, got '900', which is text; write 900"),
        (
            "execution: {warmups: '-3'}",
            "expected a whole number, got '-3', which is text; write -3",
        ),
        ("execution: {timeout_s: nan}", "expected a number, got 'nan'"),
        ("baseline_path: 3", "expected text, got 3; quote it"),
        ("baseline_path: [a]", "expected text, got ['a']"),
        ("storage: /data", "expected a list, got '/data'; write [/data]"),
        ("storage: {a: 1}", "expected a list, got {'a': 1}"),
        ("execution: {order: shuffled}", "expected 'interleaved' or 'sequential', got 'shuffled'"),
        ("gate: 3", f"expected a mapping, got 3; its keys: {OF_THE_GATE}"),
        ("arms: {candidate: {options: 3}}", "expected a mapping, got 3"),
        (
            "environments: [{name: a b, requirements: [jax]}]",
            "expected letters, digits and . _ + - after a letter or digit, got 'a b'",
        ),
        ("gate: {primary: [a, b, c, d]}", "expected a list of at most 3 items, got 4"),
        ("gate: {looks: []}", "expected a list of at least 1 item, got 0"),
    ],
)
def test_what_is_allowed_is_said_in_the_words_of_a_suite(only_problem, extra, message):
    assert only_problem(f"{extra}\n").message == message


@pytest.mark.parametrize(
    ("extra", "known", "instead"),
    [
        ("arms: {with: [jax==0.10.2]}", "baseline, candidate", PACKAGES),
        ("arms: {candidate: {with: [jax==0.10.2]}}", OF_AN_ARM, PACKAGES),
        (
            "arms: {environment: new}",
            "baseline, candidate",
            "`environment` belongs in `arms.baseline` or `arms.candidate`",
        ),
        (
            "arms: {candidate: {use_ocdbt: false}}",
            OF_AN_ARM,
            "an option of the benchmark belongs in `options`",
        ),
        (
            "gate: {metrics: {save: {looks: [10]}}}",
            "margin, min_effect_s, tolerance",
            "`looks` belongs in `gate`",
        ),
        ("gate: {retries: 3}", OF_THE_GATE, "`retries` belongs in `execution`"),
        (
            "checkpoint_config: {w: {dtype: int8, shape: []}}",
            OF_A_CHECKPOINT,
            "an array belongs in `spec`",
        ),
    ],
)
def test_a_key_at_another_place_is_told_where_it_belongs(only_problem, extra, known, instead):
    assert only_problem(f"{extra}\n").message == f"unknown key; known: {known}; {instead}"


def test_a_key_that_belongs_nowhere_is_told_the_keys_of_its_block(only_problem):
    extra = "arms: {candidate: {mesh_config: {mesh_axes: [x], zzz: 1}}}\n"
    assert only_problem(extra).message == (
        "unknown key; known: allow_split_physical_axes, dcn_parallelism, ici_parallelism, "
        "mesh_axes, name, process_is_granule"
    )


def test_a_key_of_a_block_that_stands_at_the_top_is_told_its_block(only_problem):
    assert only_problem("margin: 0.1\n").message.endswith("; `margin` belongs in `gate`")


def test_all_blocks_that_have_a_key_are_listed(only_problem):
    assert only_problem("generator: save_restore\n").message.endswith(
        "; `generator` belongs in `benchmarks`, `arms.baseline` or `arms.candidate`"
    )


def test_an_option_beside_options_is_told_its_place(problems):
    found = problems("suite_name: s\nbenchmarks:\n- {generator: g, options: {}, use_ocdbt: true}\n")
    assert [problem.message for problem in found] == [
        "unknown key; known: generator, options; an option of the benchmark belongs in `options`"
    ]
