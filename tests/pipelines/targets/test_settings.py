import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.cli.options import SETTINGS
from orbax_bench_pipelines.targets.settings import Settings, Toleration, read_settings


def refusal(file=None, **flags):
    with pytest.raises(UserError) as error:
        read_settings(file and str(file), flags)
    return str(error.value)


def test_each_field_has_an_option():
    assert set(SETTINGS) == set(Settings.model_fields)


def test_a_file_and_flags_say_the_same(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text(
        "image: a/b:1\nparallelism: 3\ntpu: ['v5e:2x4']\nnode_selectors: {pool: bench}\n"
        "tolerations: ['a=b:NoSchedule']\npvc: ['claim:/mnt/x']\nlabels: {team: ml}\n"
        "cpu: '8'\nmemory: 64Gi\n"
    )
    flags = {
        "image": "a/b:1",
        "parallelism": 3,
        "tpu": ["v5e:2x4"],
        "node_selectors": ["pool=bench"],
        "tolerations": ["a=b:NoSchedule"],
        "pvc": ["claim:/mnt/x"],
        "labels": ["team=ml"],
        "cpu": "8",
        "memory": "64Gi",
    }
    assert read_settings(str(file), {}) == read_settings(None, flags)


def test_a_flag_takes_the_place_of_a_key(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("image: a/b:1\ncpu: '8'\n")
    settings = read_settings(str(file), {"image": "c/d:2", "cpu": None, "labels": []})
    assert (settings.image, settings.cpu, settings.labels) == ("c/d:2", "8", {})


def test_an_unknown_key_is_named_with_its_line(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("cpu: '8'\nlables: {a: b}\n")
    assert refusal(file) == f"{file}:2: lables: unknown key; did you mean 'labels'?"


def test_a_wrong_slice_in_a_file_is_named_with_its_line(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("cpu: '8'\ntpu: ['v5e:3x3']\n")
    assert refusal(file).startswith(f"{file}:2: tpu: v5e 3x3 is not a topology; did you mean 2x4?")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"tpu": ["v9:2x2"]}, "--tpu: unknown TPU type 'v9'"),
        ({"labels": ["team"]}, "--label: expected KEY=VALUE, got 'team'"),
        ({"node_selectors": ["=x"]}, "--node-selector: expected KEY=VALUE, got '=x'"),
        ({"tolerations": ["a:Never"]}, "--toleration: unknown effect 'Never'"),
        ({"pvc": ["claim"]}, "--pvc: a volume claim is NAME:/MOUNT/PATH"),
        ({"pvc": ["claim:/"]}, "--pvc: a volume claim is NAME:/MOUNT/PATH"),
        ({"cpu": "many"}, "--cpu: expected CPUs, such as 8 or 500m, got 'many'"),
        ({"memory": "64GB"}, "--memory: expected bytes, such as 64Gi, got '64GB'"),
        ({"parallelism": -1}, "--parallelism: expected greater than or equal to 0, got -1"),
    ],
)
def test_a_wrong_flag_is_named(flags, expected):
    assert refusal(**flags).startswith(expected)


@pytest.mark.parametrize(
    "image",
    [
        "orbax-bench",
        "orbax-bench:0.1.0",
        "europe-docker.pkg.dev/p/r/orbax-bench:0.1.0",
        "localhost:5000/orbax-bench:dev",
        "a/b@sha256:" + "0" * 64,
        "a/b:1@sha256:" + "0" * 64,
    ],
)
def test_an_image_reference_is_taken(image):
    assert Settings(image=image).image == image


@pytest.mark.parametrize("image", ["A/B:1", "a b", "a/b:", "", "-a", "a/b@sha256:12"])
def test_what_is_no_image_reference_is_refused(image):
    assert "is no image reference" in refusal(image=image)


@pytest.mark.parametrize("image", ["sha256:" + "0" * 64, "0" * 64])
def test_an_image_id_is_refused(image):
    assert "is an image id, which nothing can pull" in refusal(image=image)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("google.com/tpu", {"key": "google.com/tpu", "operator": "Exists"}),
        ("a:NoExecute", {"key": "a", "operator": "Exists", "effect": "NoExecute"}),
        ("a=b", {"key": "a", "operator": "Equal", "value": "b"}),
        ("a=:NoSchedule", {"key": "a", "operator": "Equal", "value": "", "effect": "NoSchedule"}),
    ],
)
def test_a_toleration_is_written_as_kubectl_writes_taints(text, expected):
    assert Toleration.parse(text).model_dump(exclude_none=True) == expected


def test_a_missing_file_is_told(tmp_path):
    file = tmp_path / "none.yaml"
    assert refusal(file) == f"{file}: cannot read the settings file: there is no such file"
