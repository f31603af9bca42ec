"""Files on disk and in buckets: in full or not at all, created by one alone, and cleared away."""

from orbax_bench_core.files.atomic import (
    ResultModel,
    atomic_file,
    write_atomically,
    write_if_changed,
)
from orbax_bench_core.files.bounded import (
    MAX_BYTES,
    answered,
    as_system_error,
    opened,
    read_at_most,
    read_json,
)
from orbax_bench_core.files.credentials import check_credentials
from orbax_bench_core.files.exclusive import (
    create_exclusively,
    digest,
    is_there,
    names_in,
    read_if_there,
    swap,
)
from orbax_bench_core.files.links import refuse_links, remove_tree
from orbax_bench_core.files.places import (
    PASSPORT,
    absolute,
    checked_path,
    matching,
    place,
    user_cache,
    without_detours,
)
from orbax_bench_core.files.temporary import (
    clear_own,
    is_abandoned,
    is_gone,
    machine_id,
    new_scratch_file,
    new_scratch_folder,
    scratch_folder,
    started,
    sweep_once,
    temporary_name,
    this_machine,
)

__all__ = [
    "MAX_BYTES",
    "PASSPORT",
    "ResultModel",
    "absolute",
    "answered",
    "as_system_error",
    "atomic_file",
    "check_credentials",
    "checked_path",
    "clear_own",
    "create_exclusively",
    "digest",
    "is_abandoned",
    "is_gone",
    "is_there",
    "machine_id",
    "matching",
    "names_in",
    "new_scratch_file",
    "new_scratch_folder",
    "opened",
    "place",
    "read_at_most",
    "read_if_there",
    "read_json",
    "refuse_links",
    "remove_tree",
    "scratch_folder",
    "started",
    "swap",
    "sweep_once",
    "temporary_name",
    "this_machine",
    "user_cache",
    "without_detours",
    "write_atomically",
    "write_if_changed",
]
