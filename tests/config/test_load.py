"""From a suite file to a checked suite: every mistake by file, line and key.

Those of tests/golden/test_text_messages.py are not repeated here.
"""

import pytest

from orbax_bench_core.config import SuiteError, parse_suite

HEAD = "suite_name: s\n"


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        ("g\n", 2, "", "expected a list, got 'g'"),
        ("\n- g\n", 3, "[0]", "expected a mapping, got 'g'"),
        ("\n- {generator: g, options: {}}\n- options: {}\n", 4, "[1].generator", "is required"),
        ("\n- generator: g\n", 3, "[0].options", "this key is required"),
        ("\n- generator: g\n  options:\n", 4, "[0].options", "expected a mapping, got null"),
        ("\n- generator: g\n  options: [a]\n", 4, "[0].options", "expected a mapping, got ['a']"),
        (
            "\n- generator: g\n  options: {}\n  capture_digests_path: d\n",
            5,
            "[0].capture_digests_path",
            "unknown key; known: generator, options",
        ),
        (
            "\n- generator: g\n  options: {}\n  arms: {}\n",
            5,
            "[0].arms",
            "unknown key; known: generator, options; `arms` belongs at the top of the suite",
        ),
    ],
)
def test_what_is_wrong_with_benchmarks_is_named_at_its_line(problems, text, line, key, message):
    (problem,) = problems(f"{HEAD}benchmarks: {text}")
    assert (problem.file, problem.line, problem.key) == ("suite.yaml", line, f"benchmarks{key}")
    assert message in problem.message


@pytest.mark.parametrize(
    ("extra", "key", "message"),
    [
        ("checkpoint_confg: {}\n", "checkpoint_confg", "did you mean 'checkpoint_config'?"),
        ("mesh_confgs: []\n", "mesh_confgs", "did you mean 'mesh_configs'?"),
        ("1: 2\n", "", "a key is text, got 1; quote it"),
        ("on: 2\n", "", "got True (YAML reads a bare on, off, yes or no as true or false)"),
        ("num_repeats: 1.0\n", "num_repeats", "expected a whole number, got 1.0"),
        ("checkpoint_configs: []\n", "checkpoint_configs", "give at least one item"),
        ("checkpoint_configs: {}\n", "checkpoint_configs", "expected a list, got {}"),
        ("checkpoint_config: x\n", "checkpoint_config", "expected a mapping, got 'x'"),
        ("mesh_configs: []\n", "mesh_configs", "give at least one item"),
        ("mesh_config: []\n", "mesh_config", "expected a mapping, got []"),
    ],
)
def test_a_bad_top_level_key_is_named_at_its_line(only_problem, extra, key, message):
    problem = only_problem(extra)
    assert (problem.line, problem.key) == (4 if key else 1, key)
    assert message in problem.message


@pytest.mark.parametrize(
    ("extra", "note"),
    [
        ("reuse_checkpoint: true\n", "`reuse_checkpoint` has no effect"),
        (
            "mesh_config: {mesh_axes: [a]}\nmesh_configs: [{mesh_axes: [b]}]\n",
            "`mesh_config` is ignored because `mesh_configs` is given",
        ),
        (
            "checkpoint_config: {}\ncheckpoint_configs: [{}]\n",
            "`checkpoint_config` is ignored because `checkpoint_configs` is given",
        ),
    ],
)
def test_what_has_no_effect_is_noted(extra, note):
    loaded = parse_suite(f"{HEAD}benchmarks:\n- {{generator: g, options: {{}}}}\n{extra}")
    assert len(loaded.notes) == 1
    assert note in loaded.notes[0]


@pytest.mark.parametrize("key", ["mesh_config", "mesh_configs", "checkpoint_config"])
def test_a_block_without_content_is_as_none(accept, key):
    assert accept(f"{key}:\n") == accept("")


def test_text_is_no_suite(problems):
    assert "mapping of keys to values, got text" in problems("hello\n")[0].message


def test_mistakes_of_all_kinds_come_at_once_in_the_order_of_the_file(problems):
    text = """\
arms: {baseline: {environment: nope}, candidate: {}}
suite_name: s  # https://user:secret@host/x
mesh_config: {mesh_axes: [a], ici_parallelism: {b: 2}}
num_repeats: -1
benchmarks:
- {generator: g, options: {}, typo: 1}
gate: {margin: -1}
unknown: 3
"""
    assert [problem.line for problem in problems(text)] == [1, 2, 3, 4, 6, 7, 8]


def test_shardings_that_no_mesh_has_come_with_all_other_mistakes(problems):
    text = """\
suite_name: s
checkpoint_configs:
- spec:
    a: {dtype: f32, shape: [7, x]}
    b: {dtype: int8, shape: [8], sharding: [nowhere]}
    c: {dtype: int8, shape: [7], sharding: [x]}
- {spec: {d: {dtype: int8, shape: [8], sharding: [nowhere]}}, random_seed: -1}
num_repeats: -1
mesh_configs:
- {mesh_axes: [x], ici_parallelism: {x: 2}}
- {mesh_axes: [x], ici_parallelism: {x: two}}
benchmarks:
- {generator: g, options: {}, typo: 1}
"""
    found = problems(text)
    assert [problem.line for problem in found] == [4, 4, 5, 7, 7, 8, 11, 13]
    assert "sharding axis 'nowhere' is not in mesh_axes ['x']" in found[2].message
    mended = text.replace("x: two", "x: 2")
    assert [problem.line for problem in problems(mended)] == [4, 4, 5, 6, 7, 7, 8, 13]


def test_a_sharding_needs_a_mesh_that_is_not_null(problems):
    spec = "checkpoint_config: {spec: {a: {dtype: int8, shape: [8], sharding: [x]}}}"
    head = "suite_name: s\nbenchmarks: [{generator: g, options: {}}]\n"
    (problem,) = problems(f"{head}{spec}\nmesh_configs: null\n")
    assert "add `mesh_config`" in problem.message


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


OF_AN_ARM = "environment, generator, mesh_config, options, processes, storage"
OF_THE_GATE = (
    "alpha, blocks_per_process, draws, family, limit_minutes, lives, looks, margin, max_failures, "
    "max_stalls, metrics, min_effect_s, operations_per_life, pass_alpha, primary, seed, tolerance"
)
OF_A_CHECKPOINT = (
    "dtypes, layers, load_with_colocated_python, model, name, nnx, optimizer, path, random_seed, "
    "scale, sharding_config_path, spec"
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
        ("arms: {with: [jax==0.10.2]}", "aa, baseline, candidate", PACKAGES),
        ("arms: {candidate: {with: [jax==0.10.2]}}", OF_AN_ARM, PACKAGES),
        (
            "arms: {environment: new}",
            "aa, baseline, candidate",
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
