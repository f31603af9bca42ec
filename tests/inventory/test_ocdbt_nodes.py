"""Index files of OCDBT, as TensorStore writes them."""

import io

import pytest
import tensorstore

from orbax_bench_core.inventory.layout import holds_only_nodes

NODE = bytes.fromhex("0cdb20de") + (20).to_bytes(8, "little") + b"n" * 8


def only_nodes(content):
    return holds_only_nodes(io.BytesIO(content), len(content))


@pytest.fixture
def written(tmp_path):
    """Writes values of these sizes into a database, and returns its files."""

    def write(*sizes):
        spec = {"driver": "ocdbt", "base": {"driver": "file", "path": f"{tmp_path}/"}}
        store = tensorstore.KvStore.open(spec).result()
        with tensorstore.Transaction() as transaction:
            for index, size in enumerate(sizes):
                store.with_transaction(transaction)[f"key_{index}"] = b"v" * size
        return [path.read_bytes() for path in (tmp_path / "d").iterdir()]

    return write


def test_values_that_fit_into_the_index_leave_nothing_but_nodes(written):
    assert [only_nodes(content) for content in written(10, 20)] == [True]


def test_larger_values_are_data(written):
    assert not all(only_nodes(content) for content in written(10, 100_000))


def test_several_nodes_are_nodes():
    assert only_nodes(NODE + NODE)


@pytest.mark.parametrize(
    "content",
    [b"", b"v" * 40, NODE + b"v" * 40, b"v" * 40 + NODE, NODE[:-1], NODE[:4] + bytes(8)],
)
def test_anything_else_is_not(content):
    assert not only_nodes(content)
