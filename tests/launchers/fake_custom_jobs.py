"""Stand-in for the custom jobs of Vertex AI on the loopback interface, strict about protos."""

import re

from tests.pipelines.fakes import NOT_FOUND, FakeServer

PARENT = "projects/p-1/locations/us-central1"


def parsed(body):
    """Parses a job into the API's own proto; unknown fields are errors."""
    from google.cloud.aiplatform_v1 import types
    from google.protobuf import json_format

    return types.CustomJob(json_format.ParseDict(body, types.CustomJob.pb()()))


class FakeCustomJobs(FakeServer):
    """Keeps jobs; each goes through `states`, a step per look, and stays in the last one.

    Attributes:
        troubles: Statuses that requests are answered with first, by method and end of the path.
        lost: Whether a job is created although its answer is an error.
        error: The message of a job that ends otherwise than by success.
    """

    def __init__(self, states=("PENDING", "RUNNING", "SUCCEEDED"), error=""):
        super().__init__()
        self.states = list(states)
        self.error = error
        self.troubles = {}
        self.lost = False
        self.jobs = {}

    def answer(self, received):
        path = re.sub(r"^/v1/", "", received.path)
        what = f"{received.method} {path.rpartition(':')[2] if ':' in path else 'job'}"
        waiting = self.troubles.get(what, [])
        if waiting and not (self.lost and received.method == "POST"):
            return self._trouble(waiting.pop(0))
        if received.method == "POST" and path == f"{PARENT}/customJobs":
            name = f"{PARENT}/customJobs/{len(self.jobs) + 1}"
            parsed(received.body)
            self.jobs[name] = {**received.body, "name": name}
            if waiting:
                return self._trouble(waiting.pop(0))
            return 200, self._shown(name)
        if received.method == "GET" and path == f"{PARENT}/customJobs":
            [wanted] = re.findall(r'labels\.([a-z-]+)="(.*)"', received.query["filter"])
            found = [
                self._shown(name)
                for name, job in self.jobs.items()
                if job["labels"].get(wanted[0]) == wanted[1]
            ]
            return 200, {"customJobs": found}
        if path.endswith(":cancel"):
            self.states = ["CANCELLED"]
            return 200, {}
        if path in self.jobs:
            shown = self._shown(path)
            if len(self.states) > 1:
                self.states.pop(0)
            return 200, shown
        return NOT_FOUND

    def _shown(self, name):
        state = self.states[0]
        error = {"code": 3, "message": self.error} if state == "FAILED" else {}
        return {**self.jobs[name], "state": f"JOB_STATE_{state}", "error": error}

    @staticmethod
    def _trouble(status):
        return status, {"error": {"code": status, "message": f"trouble {status}"}}
