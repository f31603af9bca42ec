"""Messages about wrong suites, wrong flags and wrong paths, word for word."""

import pytest

from tests.golden.text_support import begin, fill, shell, tmp_path, transcript  # noqa: F401
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401

BEGIN = "suite_name: s\n"
BENCHMARKS = "benchmarks:\n- {generator: save_restore, options: {}}\n"
GOOD = BEGIN + BENCHMARKS
ARMS = GOOD + "arms: {baseline: {options: {use_ocdbt: true}}, candidate: %s}\n"
SUITES = {
    "empty": "",
    "no mapping": "- a\n- b\n",
    "no YAML": "suite_name: [a\n",
    "tabs": "suite_name: s\nbenchmarks:\n\t- x\n",
    "a tag": GOOD + "x: !!python/object/apply:os.getpid []\n",
    "two documents": GOOD + "---\n" + GOOD,
    "no name": BENCHMARKS,
    "no benchmarks": BEGIN,
    "empty benchmarks": BEGIN + "benchmarks: []\n",
    "unknown key": GOOD + "num_repeat: 3\n",
    "unknown key inside": GOOD + "execution: {warm_ups: 1}\n",
    "unknown key of nothing": GOOD + "zzzzzz: 3\n",
    "duplicate key": GOOD + "num_repeats: 1\nnum_repeats: 2\n",
    "wrong types": GOOD + "num_repeats: many\nexecution: [a]\n",
    "bad values": GOOD + "num_repeats: 0\nexecution: {order: random, timeout_s: -1, retries: x}\n",
    "no generator": BEGIN + "benchmarks:\n- {options: {}}\n",
    "unknown generator": BEGIN + "benchmarks:\n- {generator: save_restor, options: {}}\n",
    "unknown class": BEGIN + "benchmarks:\n- {generator: no_such_module.Class, options: {}}\n",
    "unknown option": BEGIN
    + "benchmarks:\n- {generator: save_restore, options: {use_ocdb: true}}\n",
    "wrong option": BEGIN + "benchmarks:\n- {generator: save_restore, options: {use_ocdbt: 3.5}}\n",
    "empty sweep": BEGIN + "benchmarks:\n- {generator: save_restore, options: {use_ocdbt: []}}\n",
    "two checkpoints": GOOD + "checkpoint_config: {model: gpt2}\ncheckpoint_configs: []\n",
    "checkpoint of two kinds": GOOD + "checkpoint_config: {model: gpt2, path: /ckpt}\n",
    "unknown dtype": GOOD + "checkpoint_config: {spec: {w: {dtype: float7, shape: [8]}}}\n",
    "bad shape": GOOD + "checkpoint_config: {spec: {w: {dtype: float32, shape: [8, -1]}}}\n",
    "unknown model": GOOD + "checkpoint_config: {model: gpt3}\n",
    "unknown sharding axis": GOOD
    + "checkpoint_config: {spec: {w: {dtype: float32, shape: [8], sharding: [tp]}}}\n"
    + "mesh_config: {mesh_axes: [fsdp], ici_parallelism: {fsdp: 8}}\n",
    "indivisible": GOOD
    + "checkpoint_config: {spec: {w: {dtype: float32, shape: [9], sharding: [fsdp]}}}\n"
    + "mesh_config: {mesh_axes: [fsdp], ici_parallelism: {fsdp: 8}}\n",
    "wrong mesh": GOOD + "mesh_config: {mesh_axes: [fsdp], ici_parallelism: {tp: 8}}\n",
    "mesh of nothing": GOOD + "mesh_config: {mesh_axes: [fsdp], ici_parallelism: {fsdp: 0}}\n",
    "object store of others": GOOD + "storage: ['s3://bucket']\n",
    "bad gate": GOOD + "gate: {tolerance: 0.5, margin: 0.1}\n",
    "bad looks": GOOD + "gate: {looks: [40, 20]}\n",
    "unknown processes": GOOD + "execution: {processes: [1, 0]}\n",
    "one arm": GOOD + "arms: {baseline: {}}\n",
    "arm with an unknown option": ARMS % "{options: {use_ocdb: false}}",
    "arm with an unknown key": ARMS % "{option: {use_ocdbt: false}}",
    "arm with a sweep": ARMS % "{options: {use_ocdbt: [true, false]}}",
    "arm with an unknown environment": ARMS % "{environment: nightly}",
    "arm with an unknown generator": ARMS % "{generator: restor}",
    "unknown environment": GOOD + "environment: nightly\n",
    "wrong environments": GOOD
    + "environments: [{name: old, packages: 3}, {requirements: [jax]}, old]\n",
    "requirement that is none": GOOD + "environments: [{name: old, requirements: ['jax=>3']}]\n",
    "removed block": GOOD + "simdevice: {}\n",
}


@pytest.mark.slow
def test_wrong_suites(shell, golden):
    said = []
    for name, text in SUITES.items():
        shell.write("suite.yaml", text)
        said.append(f"# {name}\n{text}{shell('expand', 'suite.yaml')}")
    golden("text/messages/suites.txt", "\n".join(said))


def test_files_that_are_no_suites(shell, golden):
    (shell.folder / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (shell.folder / "folder").mkdir()
    said = [shell("expand", name) for name in ("none.yaml", "binary.yaml", "folder")]
    golden("text/messages/suite_files.txt", transcript(*said))


@pytest.mark.parametrize("command", ["run", "ab"])
def test_commands_that_measure_refuse_the_suites_of_the_other(shell, golden, command):
    shell.write("plain.yaml", GOOD)
    shell.write("arms.yaml", ARMS % "{}")
    suite = "arms.yaml" if command == "run" else "plain.yaml"
    said = [shell(command, suite, "-o", "out"), shell(command, "none.yaml", "-o", "out")]
    said += [
        shell(command, "plain.yaml"),
        shell(command),
        shell(command, "arms.yaml", "-o", "s3://b/r"),
    ]
    golden(f"text/messages/{command}.txt", transcript(*said))
    assert not (shell.folder / "out").exists()


@pytest.mark.slow
def test_a_directory_of_another_run(shell, begin, fill, golden):
    suite = shell.write("suite.yaml", GOOD)
    fill(begin(suite, "out"))
    other = shell.write("other.yaml", GOOD + "num_repeats: 7\ncheckpoint_config: {model: gpt2}\n")
    shell.write("file", "")
    shell.write("broken/run.json", "{")
    shell.write("future/run.json", '{"schema_version": 99}')
    said = [shell("run", other, "-o", "out", "--no-lock", "--no-limits")]
    said += [shell("run", suite, "-o", name, "--no-lock") for name in ("file", "broken", "future")]
    said += [shell("report", name) for name in ("file", "broken", "future", "nowhere", ".")]
    golden("text/messages/directories.txt", transcript(*said))


def test_wrong_overrides(shell, golden):
    suite = shell.write("suite.yaml", GOOD)
    given = (
        "num_repeats",
        "num_repeats=many",
        "num_repeat=3",
        "benchmarks.7.options.use_ocdbt=true",
        "benchmarks.*.options.use_ocdb=true",
        "checkpoint_config.scale=0.1",
        "=3",
        "a..b=3",
        "num_repeats=[",
    )
    said = [shell("expand", suite, "--override", value) for value in given]
    golden("text/messages/overrides.txt", transcript(*said))


FLAGS = (
    ("rum",),
    ("--version",),
    ("run", "--output", "x"),
    ("run", "suite.yaml", "-o", "out", "--devices", "0"),
    ("run", "suite.yaml", "-o", "out", "--devices", "many"),
    ("run", "suite.yaml", "-o", "out", "--log-format", "xml"),
    ("run", "suite.yaml", "-o", "out", "--quiet", "--verbose"),
    ("run", "suite.yaml", "-o", "out", "--no-limits", "--new-limits"),
    ("run", "suite.yaml", "more.yaml", "-o", "out"),
    ("run", "suite.yaml", "-o", "out", "--baseline-path", "nowhere"),
    ("ab", "suite.yaml", "-o", "out", "--aa", "--passport", "nowhere.json"),
    ("compare",),
    ("compare", "nowhere"),
    ("compare", "nowhere", "elsewhere"),
    ("compare", "run"),
    ("bisect", "suite.yaml", "-o", "out"),
    ("bisect", "suite.yaml", "-o", "out", "--package", "x", "--good", "one", "--bad", "2"),
    ("baseline", "remove"),
    ("baseline", "list", "nowhere"),
    ("baseline", "show", "nowhere"),
    ("baseline", "capture", "run", "reg"),
    ("baseline", "capture", "reg", "nowhere"),
    ("baseline", "capture", "reg", "run", "--label", "a/b"),
    ("baseline", "capture", "reg", "run", "--arm", "both"),
    ("baseline", "capture", "s3://bucket/reg", "run"),
    ("history",),
    ("history", "nowhere"),
    ("history", "run", "--significance", "0.5"),
    ("history", "run", "--significance", "little"),
    ("history", "run", "--html", "s3://bucket/page.html"),
    ("calibrate",),
    ("calibrate", "nowhere"),
    ("calibrate", "run", "--save", "suite.yaml/passport.json"),
    ("record", "-o", "recording", "--", "train.py"),
    ("async-study", "nowhere"),
    ("lineage", "suite.yaml"),
    ("lineage", "."),
    ("lineage", "s3://bucket/run"),
    ("limits",),
    ("limits", "--path", "/nowhere"),
    ("limits", "--path", ".", "--size", "many"),
    ("limits", "--path", ".", "--dtype", "float7"),
    ("limits", "--path", ".", "--parallelism", "65"),
    ("sharding",),
    ("sharding", "checkpoint"),
    ("pipeline", "rum"),
    ("pipeline", "run", "suite.yaml", "--pipeline", "sweeps", "--output-directory", "out"),
    ("pipeline", "run", "none.yaml", "--output-directory", "out"),
    ("pipeline", "run", "suite.yaml", "--set", "x=1", "--output-directory", "out"),
    ("pipeline", "run", "suite.yaml"),
    ("pipeline", "submit", "suite.yaml", "--target", "moon"),
    ("pipeline", "submit", "suite.yaml", "--target", "kfp", "-o", "out"),
    ("pipeline", "submit", "suite.yaml", "--target", "vertex", "-o", "gs://bucket/out"),
    ("pipeline", "compile", "--pipeline", "sweeps", "--target", "kfp", "-o", "x.yaml"),
    ("pipeline", "schedule", "suite.yaml", "--target", "kfp", "-o", "out", "--cron", "often"),
)


@pytest.mark.slow
def test_wrong_flags(shell, make_separate_run, golden):
    make_separate_run(0, folder="run", repeats=2)
    shell.write("suite.yaml", GOOD)
    golden("text/messages/flags.txt", transcript(*(shell(*command) for command in FLAGS)))
