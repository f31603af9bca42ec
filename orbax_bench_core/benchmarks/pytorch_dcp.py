"""Save and load with PyTorch's distributed checkpoint (DCP), on gs:// too."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import pytorch
from orbax_bench_core.benchmarks.support.options import await_all_hosts
from orbax_bench_core.benchmarks.support.saving import await_result, measure_parts
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from etils import epath


_MIB = 2**20
_NAME = "pytorch_dcp"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PyTorchDcpOptions(pytorch.TorchOptions):
    """Options of `pytorch_dcp`.

    Attributes:
        async_enabled: Save in the background, with `async_save`; otherwise all of a save blocks.
        enable_async_save: What Orbax's own framework calls async_enabled; null leaves it to that.
        reference_checkpoint_path: Directory of safetensors files whose bfloat16 copy is saved, each
            array split among the processes along its first dimension; null saves the
            checkpoint_config's data, laid out over its mesh.
        save_thread_count: Threads that write, in each process; with single_file_per_rank also the
            files that each process writes.
        save_per_thread_copy_ahead_mb: MiB that are copied off a GPU ahead of their being written;
            PyTorch does so with one thread only.
        single_file_per_rank: Have each thread write one file, rather than one for each tensor.
        enable_plan_caching: Make the plan of who writes what once, and not again for each save.
        cache_staged_state_dict: Keep the memory to which a GPU's tensors are copied for the next
            repeat; needs CUDA, because PyTorch pins it.
        enable_gcs_connector: Write to gs:// through Dataflux's connector; refused, gs:// goes
            the way that it goes everywhere here.
    """

    async_enabled: interface.Sweepable[bool] = True
    enable_async_save: interface.Sweepable[bool | None] = None
    reference_checkpoint_path: interface.Sweepable[str | None] = None
    save_thread_count: interface.Sweepable[int] = 10
    save_per_thread_copy_ahead_mb: interface.Sweepable[int] = 100
    single_file_per_rank: interface.Sweepable[bool] = False
    enable_plan_caching: interface.Sweepable[bool] = True
    cache_staged_state_dict: interface.Sweepable[bool] = False
    enable_gcs_connector: interface.Sweepable[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.save_thread_count, int) and self.save_thread_count < 1:
            raise ValueError(f"save_thread_count must be 1 or more, got {self.save_thread_count}")

    @property
    def asynchronous(self) -> bool:
        """Whether to save in the background."""
        named = self.enable_async_save
        return bool(self.async_enabled if named is None else named)


@interface.benchmark_options(PyTorchDcpOptions)
class PyTorchDcp(interface.BenchmarksGenerator[PyTorchDcpOptions]):
    """Measures `save_blocking`, `save_background`, `save` (their whole) and `load`.

    Names and boundaries are those of `save_restore`. With `durable: true` also `save_durable`. A
    load takes fresh tensors, as Orbax does, and allocating them is part of it.
    """

    def test_fn(self, context: interface.TestContext[PyTorchDcpOptions]) -> interface.TestResult:
        """Runs one save and one load."""
        metrics, options = Metrics(), context.options
        path = context.path / "ckpt"
        reference = options.reference_checkpoint_path
        data = pytorch.TorchData.of(context, _NAME, reference)
        _check(options, data.device.type)
        pytorch.join_ranks(data.device)
        state = data.layout.distribute(data.local())
        saver = _Saver(options, path, state)
        await_all_hosts("pytorch_dcp_save")
        measure_parts(
            metrics,
            context,
            path,
            saver.save,
            await_result if options.asynchronous else None,
            num_bytes=data.num_bytes,
            collectors=options.collectors,
        )
        saver.close()
        del state, saver
        data.free_if_scarce()
        reader = _reader(path)
        context.prepare_load("load", path)
        with metrics.measure("load", options.collectors, num_bytes=data.num_bytes):
            loaded = _load(data, reader)
            pytorch.synchronize(data.device)
        data.verify(context, loaded)
        return interface.TestResult(metrics=metrics)


class _Saver:
    """One save, all ready but for the saving."""

    def __init__(self, options: PyTorchDcpOptions, path: epath.Path, state: dict[str, Any]) -> None:
        from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemWriter

        self._options = options
        self._state = state
        writer = FileSystemWriter(
            str(path),
            single_file_per_rank=options.single_file_per_rank,
            thread_count=options.save_thread_count,
            per_thread_copy_ahead=options.save_per_thread_copy_ahead_mb * _MIB,
            sync_files=options.sync_files and pytorch.is_local(path),
        )
        self._writer = _reaching(path, writer)
        if options.cache_staged_state_dict:
            self._writer.cache_staged_state_dict = True
            self._writer.state_dict_cache = _staged.get(_form(state))
        self._planner = DefaultSavePlanner(enable_plan_caching=options.enable_plan_caching)

    def save(self) -> Any:
        """Saves; in the background it returns what waits for the end."""
        from torch.distributed import checkpoint

        save = checkpoint.async_save if self._options.asynchronous else checkpoint.save
        return save(self._state, storage_writer=self._writer, planner=self._planner)

    def close(self) -> None:
        """Keeps the staged copy for the next repeat, where that is wanted."""
        _staged.clear()
        if self._options.cache_staged_state_dict:
            _staged[_form(self._state)] = self._writer.state_dict_cache


_staged: dict[Any, Any] = {}
"""The staged copy of the latest repeat, by the form of what it holds."""


def _form(state: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        (name, str(getattr(leaf, "dtype", type(leaf))), tuple(getattr(leaf, "shape", ())))
        for name, leaf in state.items()
    )


def _reader(path: epath.Path) -> Any:
    from torch.distributed.checkpoint import FileSystemReader

    return _reaching(path, FileSystemReader(str(path)))


def _load(data: pytorch.TorchData, reader: Any) -> dict[str, Any]:
    from torch.distributed import checkpoint

    loaded = data.layout.distribute(data.layout.empty())
    checkpoint.load(loaded, storage_reader=reader)
    return loaded


def _check(options: PyTorchDcpOptions, device: str) -> None:
    if options.cache_staged_state_dict and device != "cuda":
        raise interface.UnmetNeed(
            "cache_staged_state_dict: true needs CUDA, because PyTorch pins what it keeps; "
            "leave it out on CPUs"
        )
    if options.enable_gcs_connector:
        raise interface.UnmetNeed(
            "enable_gcs_connector: true needs Dataflux's connector, which nothing here drives; "
            "leave it out, and gs:// is written to without it"
        )


def _reaching(path: epath.Path, storage: Any) -> Any:
    """Has PyTorch's own reader or writer reach gs:// too."""
    if not pytorch.is_local(path):
        storage.fs, storage.path = _ObjectStore(), path
    return storage


class _ObjectStore:
    """The functions of PyTorch's `FileSystem`, by the library that all else here reaches gs:// by.

    PyTorch has an implementation of its own over fsspec, which is private.
    """

    @contextlib.contextmanager
    def create_stream(self, path: epath.Path, mode: str) -> Iterator[IO[Any]]:
        with path.open(mode) as stream:
            yield stream

    def concat_path(self, path: epath.Path, suffix: str) -> epath.Path:
        return path / suffix

    def rename(self, path: epath.Path, new_path: epath.Path) -> None:
        """Gives a file another name: that of the metadata, which is small."""
        new_path.write_bytes(path.read_bytes())
        path.unlink()

    def mkdir(self, path: epath.Path) -> None:
        """Makes a directory, which an object store does not have."""

    def exists(self, path: epath.Path) -> bool:
        return bool(path.exists())

    def rm_file(self, path: epath.Path) -> None:
        path.unlink()
