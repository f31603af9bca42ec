"""Provenance: machine, storage, versions and image of a process, and revision of what it runs."""

from orbax_bench_core.provenance.code import UNKNOWN as UNKNOWN
from orbax_bench_core.provenance.code import CodeUnderTest as CodeUnderTest
from orbax_bench_core.provenance.code import Source as Source
from orbax_bench_core.provenance.code import ask_git as ask_git
from orbax_bench_core.provenance.code import code_under_test as code_under_test
from orbax_bench_core.provenance.code import loaded_code as loaded_code
from orbax_bench_core.provenance.code import recorded_code as recorded_code
from orbax_bench_core.provenance.machine import IMAGE as IMAGE
from orbax_bench_core.provenance.machine import NODE as NODE
from orbax_bench_core.provenance.machine import PACKAGES as PACKAGES
from orbax_bench_core.provenance.machine import REJOINED as REJOINED
from orbax_bench_core.provenance.machine import device_provenance as device_provenance
from orbax_bench_core.provenance.machine import host_provenance as host_provenance
from orbax_bench_core.provenance.machine import image_that_runs as image_that_runs
from orbax_bench_core.provenance.machine import other_surroundings as other_surroundings
from orbax_bench_core.provenance.machine import package_version as package_version
from orbax_bench_core.provenance.machine import storage_provenance as storage_provenance
from orbax_bench_core.provenance.machine import surroundings as surroundings
from orbax_bench_core.provenance.machine import worker_id as worker_id
