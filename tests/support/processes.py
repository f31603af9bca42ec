"""Processes of the command line, as a person at a terminal starts them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
REAL_CLI = "orbax_bench_core.cli"
FAKE_CLI = "tests.support.fake_cli"
LONGEST_S = 300.0
_UNSET = ("XLA_FLAGS", "JAX_ENABLE_X64", "ORBAX_BENCH_TOKEN")


def plain_environment(environment: Mapping[str, str] = os.environ, **more: str) -> dict[str, str]:
    """Returns an environment without what the tests set for JAX, and with more."""
    given = {name: text for name, text in environment.items() if name not in _UNSET} | more
    given["PYTHONPATH"] = os.pathsep.join(filter(None, [given.get("PYTHONPATH"), str(ROOT)]))
    return given


def run_cli(
    *arguments: object,
    cli: str = REAL_CLI,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
    inside: Sequence[str] = (),
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, on devices as this machine has them."""
    return subprocess.run(
        [*inside, sys.executable, "-m", cli, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=plain_environment(environment, **more),
        cwd=folder,
        timeout=570,
        check=False,
    )


def wait_until(
    condition: Callable[[], object], told: Callable[[], str] = str, within_s: float = LONGEST_S / 3
) -> None:
    """Waits until something holds; where it does not, the error says what was told."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain:\n{told()}"
        time.sleep(0.01)


@contextlib.contextmanager
def interrupts(*, ignored: bool = False) -> Iterator[None]:
    """Has what is started meanwhile heed SIGINT, or ignore it, and SIGHUP, whatever tests do."""
    # A child takes over what is ignored; `preexec_fn` would fork, which JAX warns of.
    handler = signal.SIG_IGN if ignored else signal.default_int_handler
    before = signal.signal(signal.SIGINT, handler), signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, usual in zip((signal.SIGINT, signal.SIGHUP), before, strict=True):
            signal.signal(number, usual)


def start_cli(
    *arguments: object,
    cli: str = REAL_CLI,
    environment: Mapping[str, str] | None = None,
    ignores_interrupts: bool = False,
    output: IO[str] | None = None,
    inside: Sequence[str] = (),
    folder: Path | None = None,
) -> subprocess.Popen[str]:
    """Starts a command, with both its outputs in one pipe.

    Tests themselves may run where a shell or cron ignores SIGINT, which a child would inherit; a
    command at a terminal does not ignore it.

    Args:
        arguments: The command and its flags.
        cli: The module to run: with real workers, or with fakes.
        environment: Its environment; None takes that of the tests.
        ignores_interrupts: Whether it is started as in the background, with SIGINT ignored.
        output: A file for both its outputs; None makes a pipe.
        inside: Words before the command, that have it run elsewhere under the same pid.
        folder: Where it is started; None for that of the tests.
    """
    given = dict(os.environ if environment is None else environment)
    given["PYTHONPATH"] = os.pathsep.join(filter(None, [given.get("PYTHONPATH"), str(ROOT)]))
    with interrupts(ignored=ignores_interrupts):
        return subprocess.Popen(
            [*inside, sys.executable, "-m", cli, *map(str, arguments)],
            stdout=subprocess.PIPE if output is None else output,
            stderr=subprocess.STDOUT,
            text=True,
            env=given,
            cwd=folder,
        )


def free_address() -> str:
    """Returns an address on this machine at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def say_together(code: str, *arguments: str, devices: int = 4) -> list[Any]:
    """Runs code in two processes of simulated devices; returns the JSON that each prints last.

    The first two arguments that it gets are an address for `jax.distributed` and its own index.
    """
    given = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "PYTHONPATH": str(ROOT),
    }
    address = free_address()
    with contextlib.ExitStack() as running:
        processes = [
            running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code, address, str(index), *arguments],
                    env=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for index in range(2)
        ]
        for process in processes:
            running.callback(process.kill)
        said = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    return [json.loads(output.splitlines()[-1]) for output, _ in said]
