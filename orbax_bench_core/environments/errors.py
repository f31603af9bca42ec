"""Failure to make an environment, or to run a worker in it."""

from __future__ import annotations


class EnvironmentFailed(Exception):
    """An environment could not be made, or cannot run a worker.

    Attributes:
        output: All that the program that failed printed; empty when there was none.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output
