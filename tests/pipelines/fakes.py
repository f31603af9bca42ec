"""Stand-ins for Kubeflow Pipelines, Vertex AI and Cloud Storage on the loopback interface.

They record what arrives and answer as little as the clients need. What the bodies must look like is
checked with the services' own protos.
"""

import contextlib
import dataclasses
import http.server
import json
import re
import socket
import threading
import urllib.parse

from tests.support.loopback import answering


@dataclasses.dataclass(frozen=True)
class Received:
    method: str
    path: str
    query: dict
    body: object


class FakeServer:
    """A server whose answers a subclass gives in `answer(received) -> (status, body)`."""

    def __init__(self):
        self.received = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _handle(self):
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                url = urllib.parse.urlsplit(self.path)
                received = Received(
                    self.command,
                    urllib.parse.unquote(url.path),
                    {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()},
                    json.loads(raw) if raw.strip().startswith((b"{", b"[")) else raw.decode(),
                )
                outer.received.append(received)
                status, body = outer.answer(received)
                payload = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

            def log_message(self, *_):
                pass

        self._handler = Handler

    @contextlib.contextmanager
    def serving(self):
        with answering(self._handler) as server:
            self.url = server.url
            yield self

    def bodies(self, method, end_of_path):
        return [
            each.body
            for each in self.received
            if each.method == method and re.search(f"{end_of_path}$", each.path)
        ]


UNWELL = (503, {"message": "starting"})
SIGN_IN = (200, b"<html><body>Sign in</body></html>")
NOT_FOUND = (404, {"error": {"code": 404, "message": "not found", "status": "NOT_FOUND"}})


class FakeKubeflow(FakeServer):
    """Knows experiments, runs and recurring runs; a run goes through `states`, then stays.

    `logs` are those of pods by their names, which the tasks of a run name as their children;
    `nodes` are those of its workflow, as Argo notes them.
    """

    def __init__(self, states=("SUCCEEDED",), logs=(), nodes=()):
        super().__init__()
        self.nodes = {str(number): node for number, node in enumerate(nodes)}
        self.logs = dict(logs)
        self.experiments = {}
        self.recurring = {}
        self.runs = {}
        self.made = 0
        self.states = list(states)
        self.state = ""

    def answer(self, received):
        if log := re.fullmatch("/apis/v1alpha1/runs/run-1/nodes/(.*)/log", received.path):
            found = self.logs.get(log[1])
            # As it answers for a pod that is gone and was not archived: 200 was sent before.
            nothing = {"error_message": "BadRequestError: Failed to read logs for run run-1"}
            text = json.dumps(nothing, separators=(",", ":")) if found is None else found
            return 200, text.encode()
        if received.path == "/apis/v1beta1/runs/run-1":
            # A pod that never started has failed by the end, with another message.
            ended = {"phase": "Failed", "message": "Pod was active on the node longer than ..."}
            over = ended if self.state in ("SUCCEEDED", "FAILED") else {}
            nodes = {number: node | over for number, node in self.nodes.items()}
            workflow = json.dumps({"metadata": {"name": "wf"}, "status": {"nodes": nodes}})
            return 200, {"run": {}, "pipeline_runtime": {"workflow_manifest": workflow}}
        path = received.path.removeprefix("/apis/v2beta1")
        if path == "/healthz":
            return 200, {"multi_user": False}
        if path == "/experiments" and received.method == "GET":
            return 200, {"experiments": list(self.experiments.values())}
        if path == "/experiments":
            name = received.body["display_name"]
            new = {**received.body, "experiment_id": f"experiment-of-{name}"}
            self.experiments[name] = new
            return 200, new
        if path == "/runs" and received.method == "GET":
            return 200, {"runs": list(self.runs.values())}
        if path == "/runs":
            return 200, {**received.body, "run_id": "run-1", "state": "PENDING"}
        if path.startswith("/runs/"):
            self.state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
            if self.state == "DELETED":
                return NOT_FOUND
            details = [
                {
                    "display_name": f"task {number}",
                    "create_time": f"2026-01-01T00:00:{number:02}Z",
                    "child_tasks": [{"pod_name": pod}],
                }
                for number, pod in enumerate(self.logs)
            ]
            run = {"run_id": "run-1", "state": self.state, "run_details": {"task_details": details}}
            return 200, run
        if path == "/recurringruns" and received.method == "GET":
            return 200, {"recurringRuns": list(self.recurring.values())}
        if path == "/recurringruns":
            self.made += 1
            key = f"recurring-{self.made}"
            status = {"ENABLE": "ENABLED", "DISABLE": "DISABLED"}[received.body["mode"]]
            new = {**received.body, "recurring_run_id": key, "status": status}
            self.recurring[new["recurring_run_id"]] = new
            return 200, new
        if path.startswith("/recurringruns/") and ":" in path:
            key, _, word = path.rsplit("/", 1)[1].partition(":")
            self.recurring[key]["status"] = f"{word}d".upper()
            return 200, {}
        if path.startswith("/recurringruns/") and received.method == "DELETE":
            del self.recurring[path.rsplit("/", 1)[1]]
            return 200, {}
        return NOT_FOUND


_LISTED = ("contexts", "executions", "artifacts")


class FakeVertex(FakeServer):
    """Knows pipeline jobs, schedules, metadata contexts and buckets, of one project."""

    parent = "projects/p-1/locations/us-central1"

    def __init__(self, state=4, tasks=()):
        super().__init__()
        self.state = state
        self.tasks = list(tasks)
        self.jobs = {}
        self.schedules = {}
        self.contexts = {}
        self.children = {}
        self.artifacts = []
        self.buckets = {"b"}

    def answer(self, received):
        path = received.path
        if path.startswith(("/storage/", "/upload/")):
            return self._storage(received)
        path = re.sub(r"^/v1(beta1)?/", "", path)
        for part, handle in (
            ("/pipelineJobs", self._jobs),
            ("/schedules", self._schedules),
            ("/metadataStores", self._metadata),
            ("/tensorboards", self._tensorboards),
        ):
            if part in path:
                return handle(received, path)
        return NOT_FOUND

    def _storage(self, received):
        if received.method == "GET" and received.path.endswith("/iam"):
            return 200, {"kind": "storage#policy", "bindings": [], "etag": "x"}
        if received.method == "GET":
            name = received.path.rsplit("/", 1)[1]
            return (200, {"name": name}) if name in self.buckets else NOT_FOUND
        if received.path.endswith("/b"):
            self.buckets.add(received.body["name"])
        return 200, received.body

    def _jobs(self, received, path):
        if received.method == "POST":
            name = f"{self.parent}/pipelineJobs/{received.query['pipelineJobId']}"
            context = f"{self.parent}/metadataStores/default/contexts/run-1"
            self.contexts["run-1"] = _context(context, "system.PipelineRun")
            self.jobs[name] = {
                **received.body,
                "name": name,
                "state": self.state,
                "jobDetail": {
                    "pipelineRunContext": self.contexts["run-1"],
                    "taskDetails": self.tasks,
                },
            }
            return 200, self.jobs[name]
        if path.endswith("/pipelineJobs"):
            return 200, {"pipelineJobs": list(self.jobs.values())}
        return (200, self.jobs[path]) if path in self.jobs else NOT_FOUND

    def _schedules(self, received, path):
        if received.method == "POST" and ":" in path:
            name, _, word = path.rpartition(":")
            self.schedules[name]["state"] = {"pause": 2, "resume": 1}[word]
            return 200, {}
        if received.method == "POST":
            name = f"{self.parent}/schedules/{len(self.schedules) + 1}"
            self.schedules[name] = {**received.body, "name": name, "state": 1}
            return 200, self.schedules[name]
        if received.method == "PATCH":
            self.schedules[path] = {**self.schedules[path], **received.body}
            return 200, self.schedules[path]
        if path.endswith("/schedules"):
            wanted = re.fullmatch(r'display_name="(.*)"', received.query["filter"]).group(1)
            found = [each for each in self.schedules.values() if each["displayName"] == wanted]
            return 200, {"schedules": found}
        return (200, self.schedules[path]) if path in self.schedules else NOT_FOUND

    def _metadata(self, received, path):
        if ":addContextChildren" in path:
            self.children[path.partition(":")[0]] = received.body["childContexts"]
            return 200, {}
        if received.method == "GET" and (listed := path.rpartition("/")[2]) in _LISTED:
            return 200, {listed: self._listed(listed, received.query.get("filter", ""))}
        if path.endswith("/metadataStores/default"):
            return 200, {"name": path}
        if received.method == "POST" and path.endswith("/contexts"):
            key = received.query["contextId"]
            self.contexts[key] = {**received.body, "name": f"{path}/{key}"}
            return 200, self.contexts[key]
        key = path.rsplit("/", 1)[1]
        if received.method == "PATCH":
            self.contexts[key] = {**self.contexts[key], **received.body}
            return 200, self.contexts[key]
        return (200, self.contexts[key]) if key in self.contexts else NOT_FOUND

    def _listed(self, kind, wanted):
        """What is listed for a filter, in the words of `_make_filter_string` of the client."""
        titles = re.findall(r'schema_title="([^"]+)"', wanted)
        parents = re.findall(r'parent_contexts:"([^"]+)"', wanted)
        there = {"contexts": list(self.contexts.values()), "artifacts": self.artifacts}
        return [
            each
            for each in there.get(kind, ())
            if each["schemaTitle"] in titles
            and all(each["name"] in self.children.get(parent, ()) for parent in parents)
        ]

    def _tensorboards(self, received, path):
        return 200, {"name": path, "displayName": "board"}


def _context(name, title):
    return {"name": name, "schemaTitle": title, "schemaVersion": "0.0.1"}


@contextlib.contextmanager
def address_that_answers(said: bytes):
    """Gives the address of a server that says the same to whoever connects, once."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@contextlib.contextmanager
def silent_address():
    """Gives the address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
