import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.targets.settings import Settings, read_changes, read_settings


def refusal(file=None, **flags):
    with pytest.raises(UserError) as error:
        read_settings(file and str(file), flags)
    return str(error.value)


def test_a_file_and_changes_say_the_same(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text(
        "image: a/b:1\nparallelism: 3\ntpu: ['v5e:2x4']\nnode_selectors: {a.b/pool: bench}\n"
        "tolerations: [{key: a, value: b, operator: Equal}]\npvc: {name: claim, path: /mnt/x/}\n"
        "labels: {team: ml}\ncpu: '8'\nmemory: 64Gi\nsteps: {aggregate: {cpu: '4', retries: 2}}\n"
        "environment: {FLAGS: '--a=1 --b={}', retries: 'true'}\nspot: true\n"
    )
    changes = [
        *("image=a/b:1", "parallelism=3", "tpu=v5e:2x4", "node_selectors.a.b/pool=bench"),
        *("tolerations={key: a, value: b, operator: Equal}", "pvc={name: claim, path: /mnt/x}"),
        *("labels={team: ml}", "cpu=8", "memory=64Gi", "steps.aggregate.cpu=4"),
        *("steps.aggregate.retries=2", "environment.FLAGS=--a=1 --b={}"),
        *("environment.retries=true", "spot=true"),
    ]
    assert read_settings(str(file), {}) == read_settings(None, read_changes(changes))


def test_a_key_of_a_file_is_unset_by_null(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("retries: 3\nspot: true\n")
    assert read_settings(str(file), read_changes(["retries=null", "spot=null"])).given == []


def test_a_change_takes_the_place_of_one_key(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("image: a/b:1\ncpu: '8'\nlabels: {a: b, c: d}\n")
    settings = read_settings(str(file), read_changes(["image=c/d:2", "labels.a=e"]))
    assert (settings.image, settings.cpu) == ("c/d:2", "8")
    assert settings.labels == {"a": "e", "c": "d"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("team", "--set takes KEY=VALUE, got 'team'"),
        ("lables.a=b", "--set lables: unknown key; did you mean 'labels'"),
        ("tpu=[v5e:2x4", "--set tpu: the value cannot be read"),
    ],
)
def test_a_change_that_cannot_be_read_is_named(change, said):
    with pytest.raises(UserError) as error:
        read_changes([change])
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lables: {a: b}", "lables: unknown key; did you mean 'labels'?"),
        ("tpu: ['v5e:3x3']", "tpu: v5e 3x3 is not a topology; did you mean 2x4?"),
        ("steps: {aggregate: {cpuu: '4'}}", "steps.aggregate.cpuu: unknown key; did you mean"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(tmp_path, line, said):
    file = tmp_path / "settings.yaml"
    file.write_text(f"cpu: '8'\n{line}\n")
    assert refusal(file).startswith(f"{file}:2: {said}")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"tpu": ["v9:2x2"]}, "--set tpu: unknown TPU type 'v9'"),
        (
            {"tolerations": {"key": "a", "effect": "Never"}},
            "--set tolerations.effect: expected 'NoSchedule'",
        ),
        ({"pvc": {"name": "a", "path": "/"}}, "--set pvc.path: expected a folder such as"),
        ({"cpu": "many"}, "--set cpu: expected CPUs, such as 8 or 500m, got 'many'"),
        ({"memory": "1.5Gi"}, "--set memory: expected bytes, a whole number such as 64Gi, got"),
        (
            {"memory": "64GB"},
            "--set memory: expected bytes, a whole number such as 64Gi, got '64GB'",
        ),
        (
            {"steps": {"agregate": {"cpu": "4"}}},
            "--set steps: there is no step 'agregate'; did you mean 'aggre",
        ),
        (
            {"steps": {"run-sweep-point": {"cpu": "4"}}},
            "--set steps: CPUs and memory of run-sweep-point are the settings",
        ),
        ({"secrets": {"name": "s"}}, "--set secrets: a secret has key and variable, or path"),
        (
            {"secrets": {"name": "s", "key": "k", "variable": "1X"}},
            "--set secrets.variable: expected the name of a variable, got '1X'",
        ),
        ({"scratch": {"path": "/p"}}, "--set scratch.size: this key is required"),
        ({"node_affinity": {"key": "zone"}}, "--set node_affinity: In and NotIn have values"),
        (
            {"environment": {"ORBAX_BENCH_IMAGE": "x"}},
            "--set environment: ORBAX_BENCH_IMAGE is set by",
        ),
        (
            {"environment": {"a-b": "x"}},
            "--set environment.a-b: expected the name of a variable",
        ),
        (
            {"gpu": "h100"},
            "--set gpu: GPUs are KIND:COUNT, such as h100-80gb:8, or COUNT; got 'h100'",
        ),
        ({"queue": "My Queue"}, "--set queue: expected a name of Kubernetes"),
    ],
)
def test_a_wrong_flag_is_named(flags, expected):
    assert refusal(**flags).startswith(expected)


@pytest.mark.parametrize(
    "image",
    [
        "orbax-bench",
        "localhost:5000/orbax-bench:dev",
        "a/b@sha256:" + "0" * 64,
        "a/b:1@sha256:" + "0" * 64,
    ],
)
def test_an_image_reference_is_taken(image):
    assert Settings(image=image).image == image


@pytest.mark.parametrize("image", ["A/B:1", "a b", "a/b:", "", "-a", "a/b@sha256:12"])
def test_what_is_no_image_reference_is_refused(image):
    assert "is not an image reference" in refusal(image=image)


def test_a_missing_file_is_told(tmp_path):
    file = tmp_path / "none.yaml"
    assert refusal(file) == f"{file}: cannot read the settings file: there is no such file"
