"""Failures that must not spread."""

from __future__ import annotations

import logging

import pytest

from orbax_bench_core.measure import observers

from .conftest import Logged


def _fail() -> int:
    raise OSError("disk full")


def test_only_the_first_failure_is_a_warning(logged: Logged) -> None:
    observers.attempt("fail twice", _fail, 0)
    observers.attempt("fail twice", _fail, 0)

    assert [record.levelno for record in logged.records] == [logging.WARNING, logging.DEBUG]


def test_an_interrupt_is_no_failure() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        observers.attempt("be interrupted", interrupt, None)
