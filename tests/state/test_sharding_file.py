import json
from pathlib import Path
from typing import Any

import jax
import pytest

from orbax_bench_core.state import sharding_file
from orbax_bench_core.state.tree import StateError


def _entry(**changes: Any) -> dict[str, Any]:
    entry = {
        "shape": [8, 6],
        "dtype": "bfloat16",
        "mesh": [4, 2],
        "axes": ["a", "b"],
        "spec": ["a", "b"],
    }
    entry |= changes
    return {
        "shape": entry["shape"],
        "dtype": entry["dtype"],
        "sharding": {
            "mesh": {"shape": entry["mesh"], "axes": entry["axes"]},
            "spec": entry["spec"],
        },
    }


def _target(tmp_path: Path, **changes: Any) -> jax.ShapeDtypeStruct:
    file = tmp_path / "sharding.json"
    file.write_text(json.dumps({"p.w": _entry(**changes)}))
    entries = sharding_file.read_sharding_file(str(file))
    return sharding_file.sharding_targets(entries, {"p.w": (8, 6)}, jax.devices())["p.w"]


def test_an_entry_gives_shape_dtype_and_sharding(tmp_path: Path) -> None:
    target = _target(tmp_path)
    assert (target.shape, target.dtype) == ((8, 6), jax.numpy.bfloat16)
    assert target.sharding.shard_shape((8, 6)) == (2, 3)
    assert target.sharding.mesh.devices.tolist() == [
        [jax.devices()[2 * row], jax.devices()[2 * row + 1]] for row in range(4)
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mesh": [4], "axes": ["a"], "spec": ["a"]}, r"mesh \[4\] needs 4 devices; 8 are here"),
        ({"mesh": [4, 2], "axes": ["a"]}, "differ in length or repeat an axis"),
        ({"mesh": [4, 2], "axes": ["a", "a"]}, "differ in length or repeat an axis"),
        ({"shape": [8, 7]}, r"says shape \[8, 7\], the checkpoint holds \[8, 6\]"),
        ({"dtype": "float31"}, "unknown dtype 'float31'"),
        ({"spec": ["a", "b", None]}, "spec has 3 entries for 2 dimensions"),
        ({"spec": ["c"]}, "axis 'c' is not one of the mesh axes"),
        ({"spec": [None, "a"]}, "dimension 1 has 6 elements, which axis 'a' of size 4 does not"),
    ],
)
def test_an_entry_that_does_not_fit_names_the_leaf(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(StateError, match=rf"leaf 'p\.w': .*{message}"):
        _target(tmp_path, **changes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "Input should be an object"),
        ("{", "Invalid JSON"),
        ('{"w": {"shape": [8]}}', r"w\.dtype: Field required"),
    ],
)
def test_content_of_another_form_is_refused(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "sharding.json"
    file.write_text(content)
    with pytest.raises(StateError, match=message):
        sharding_file.read_sharding_file(str(file))
