"""Launchers: the same command, started on every host of a place where many hosts are."""

from orbax_bench_core.launchers.hardware import GENERATIONS as GENERATIONS
from orbax_bench_core.launchers.hardware import GKE_GPU as GKE_GPU
from orbax_bench_core.launchers.hardware import GKE_RESOURCE as GKE_RESOURCE
from orbax_bench_core.launchers.hardware import GPU_KINDS as GPU_KINDS
from orbax_bench_core.launchers.hardware import GPU_RESOURCE as GPU_RESOURCE
from orbax_bench_core.launchers.hardware import Gpus as Gpus
from orbax_bench_core.launchers.hardware import SliceShape as SliceShape
from orbax_bench_core.launchers.hardware import expectation as expectation
from orbax_bench_core.launchers.hardware import expected_devices as expected_devices
from orbax_bench_core.launchers.hardware import named_processes as named_processes
from orbax_bench_core.launchers.hardware import parse_gpus as parse_gpus
from orbax_bench_core.launchers.hardware import parse_slice as parse_slice
from orbax_bench_core.launchers.hardware import require_whole_slices as require_whole_slices
from orbax_bench_core.launchers.launch import LONGEST_NAME as LONGEST_NAME
from orbax_bench_core.launchers.launch import Launch as Launch
from orbax_bench_core.launchers.launch import Launcher as Launcher
from orbax_bench_core.launchers.launch import job_name as job_name
from orbax_bench_core.launchers.places import PLACES as PLACES
from orbax_bench_core.launchers.places import Place as Place
from orbax_bench_core.launchers.places import expected_of as expected_of
from orbax_bench_core.launchers.places import make_launcher as make_launcher
from orbax_bench_core.launchers.places import place_named as place_named
from orbax_bench_core.launchers.places import place_settings as place_settings
from orbax_bench_core.launchers.shipping import is_digest as is_digest
from orbax_bench_core.launchers.vertex import note_job as note_job
from orbax_bench_core.launchers.vertex import noted_job as noted_job
