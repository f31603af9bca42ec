"""Environments: the Pythons, each with its own library versions, that workers run with."""

from orbax_bench_core.environments.interpreter import Interpreter as Interpreter
from orbax_bench_core.environments.make import is_made as is_made
from orbax_bench_core.environments.make import make_environments as make_environments
from orbax_bench_core.environments.supported import OLDEST_JAX as OLDEST_JAX
from orbax_bench_core.environments.supported import OLDEST_ORBAX as OLDEST_ORBAX
from orbax_bench_core.environments.supported import EnvironmentFailed as EnvironmentFailed
from orbax_bench_core.environments.uv import check_release as check_release
from orbax_bench_core.environments.uv import newest_release as newest_release
from orbax_bench_core.environments.uv import releases as releases
