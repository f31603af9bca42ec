"""Loopback Kubernetes API, strict about what it is sent; its controller follows a script."""

import contextlib
import copy
import http.server
import json
import re
import threading
import time
import urllib.parse
from pathlib import Path

import jsonschema
import yaml

from tests.support.loopback import answering

SCHEMAS = Path(__file__).parents[1] / "data" / "manifests"
JOBSET_SCHEMA = json.loads((SCHEMAS / "jobset-schema.json").read_text())
METADATA = JOBSET_SCHEMA["properties"]["metadata"]
SECRET_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "stringData"],
    "properties": {
        "apiVersion": {"const": "v1"},
        "kind": {"const": "Secret"},
        "metadata": METADATA,
        "type": {"const": "Opaque"},
        "stringData": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
PATHWAYS_SCHEMA = json.loads((SCHEMAS / "pathwaysjob-schema.json").read_text())
PATHWAYS_SCHEMA["properties"]["metadata"] = METADATA
PATHWAYS_SCHEMA["properties"]["spec"]["properties"]["controller"]["properties"]["template"] = (
    JOBSET_SCHEMA["properties"]["spec"]["properties"]["replicatedJobs"]["items"]["properties"][
        "template"
    ]["properties"]["spec"]["properties"]["template"]
)
NAMESPACE = "bench"
BEARER = "test-bearer"
RULES = next(
    yaml.safe_load_all(
        (Path(__file__).parents[2] / "examples" / "gke" / "launcher-rbac.yaml").read_text()
    )
)["rules"]
"""What our role allows: the server allows no more."""
_QUERY = {
    "list": {"labelSelector", "fieldSelector", "watch", "resourceVersion", "timeoutSeconds"},
    "log": {"container", "follow", "timestamps", "previous", "limitBytes"},
    "delete": {"propagationPolicy"},
}


class Failure(Exception):
    """An answer of the server that is no success."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status
        self.message = message


class Cluster:
    """What the server knows, and a controller that takes one step of its script per look.

    Attributes:
        script: Functions of this cluster; each look at the job (GET) calls the next one first.
        failures: Per "METHOD kind", statuses to answer with before anything is done.
        lost_answers: Per "METHOD kind", statuses to answer with after it has been done.
        requests: Every request, as "METHOD path".
        sent: Bodies that were sent, in order.
        watches: What watches do, in order: a status, "slow", "gone" (an ERROR event) or "event".
        slow_s: How long a slow watch says nothing.
    """

    def __init__(self, *, kind="jobsets", group="jobset.x-k8s.io/v1alpha2", schema=JOBSET_SCHEMA):
        self.kind = kind
        self.group = group
        self.schemas = {kind: schema, "secrets": SECRET_SCHEMA}
        self.script = []
        self.failures = {}
        self.lost_answers = {}
        self.requests = []
        self.sent = []
        self.watches = []
        self.slow_s = 0.3
        self.objects = {kind: {}, "secrets": {}, "pods": {}}
        self.logs = {}
        self.deleted = []
        self.lock = threading.RLock()
        self._version = 0

    def stored(self, kind, body):
        """Keeps an object, as the server does."""
        self._version += 1
        made = copy.deepcopy(body)
        made["metadata"] |= {"uid": f"uid-{self._version}", "resourceVersion": str(self._version)}
        self.objects[kind][made["metadata"]["name"]] = made
        return made

    @property
    def job(self):
        (job,) = self.objects[self.kind].values()
        return job

    def status(self, **status):
        self._version += 1
        self.job["metadata"]["resourceVersion"] = str(self._version)
        self.job.setdefault("status", {}).update(status)

    def pod(self, name, *, job=0, index=0, role="hosts", container="bench", own=None, **state):
        """Puts a pod in place; `state` is that of its container."""
        restarts = state.pop("restarts", 0)
        last = state.pop("last", {})
        status = {"phase": state.pop("phase", "Running"), "conditions": state.pop("conditions", [])}
        if state:
            status["containerStatuses"] = [
                {"name": container, "restartCount": restarts, "state": state, "lastState": last}
            ]
        labels = {
            "jobset.sigs.k8s.io/jobset-name": own or self.job["metadata"]["name"],
            "jobset.sigs.k8s.io/replicatedjob-name": role,
            "jobset.sigs.k8s.io/job-index": str(job),
            "batch.kubernetes.io/job-completion-index": str(index),
        }
        self.objects["pods"][name] = {
            "metadata": {"name": name, "labels": labels, "uid": f"uid-{name}"},
            "status": status,
        }

    def handle(self, method, kind, name, body, query):
        key = f"{method} {kind}"
        if self.failures.get(key):
            status = self.failures[key].pop(0)
            raise Failure(status, f"injected {status}")
        answer = self._do(method, kind, name, body, query)
        if self.lost_answers.get(key):
            raise Failure(self.lost_answers[key].pop(0), "the answer was lost")
        return answer

    def _do(self, method, kind, name, body, query):
        there = self.objects[kind]
        if method == "POST":
            self._check(kind, body)
            if body["metadata"]["name"] in there:
                raise Failure(409, f'{kind} "{body["metadata"]["name"]}" already exists')
            self.sent.append(body)
            return self.stored(kind, body)
        if method == "GET" and name is None:
            wanted = dict([query["labelSelector"].split("=")]) if "labelSelector" in query else {}
            items = [pod for pod in there.values() if wanted.items() <= pod_labels(pod).items()]
            return {"kind": "List", "metadata": {}, "items": items}
        if method == "GET" and kind == self.kind and name in there and self.script:
            self.script.pop(0)(self)
        if name not in there:
            raise Failure(404, f'{kind} "{name}" not found')
        if method == "DELETE":
            self.deleted.append(f"{kind}/{name}")
            return there.pop(name)
        return there[name]

    def _check(self, kind, body):
        errors = list(jsonschema.Draft202012Validator(self.schemas[kind]).iter_errors(body))
        if errors:
            place = "/".join(map(str, errors[0].path))
            raise Failure(422, f"strict decoding error: {place}: {errors[0].message}")
        if kind == "jobsets" and (refused := webhook_refusals(body)):
            name = body["metadata"]["name"]
            raise Failure(422, f'JobSet "{name}" is invalid: {"; ".join(refused)}')


def webhook_refusals(jobset):
    """Returns what JobSet's webhook says of a new JobSet.

    The rules are those of `ValidateCreate` in pkg/webhooks/jobset_webhook.go on 18 August 2026, for
    the fields that launchers set.
    """
    name, spec = jobset["metadata"]["name"], jobset["spec"]
    jobs = {job["name"]: job for job in spec["replicatedJobs"]}
    subdomain = spec.get("network", {}).get("subdomain", name)
    said = [] if _is_label(subdomain) else [f"spec.network.subdomain: {subdomain}"]
    for job in jobs.values():
        last, pods = job["replicas"] - 1, job["template"]["spec"]
        longest = f"{name}-{job['name']}-{last}"
        if job["replicas"] * pods["parallelism"] > 2**31 - 1:
            said.append("the product of replicas and parallelism must not exceed 2147483647")
        if not _is_label(longest):
            said.append(f"JobSet name is too long, or no name of a job: {longest}")
        if pods["completionMode"] == "Indexed":
            pod = f"{longest}-{pods['completions'] - 1}-abcde"
            if not _is_label(pod):
                said.append(f"JobSet name is too long, or no name of a pod: {pod}")
    policy = spec.get("failurePolicy", {}).get("rules", [])
    named = [target for rule in policy for target in rule.get("targetReplicatedJobs", [])]
    named += spec["successPolicy"].get("targetReplicatedJobs", [])
    said += [f"invalid replicatedJob name '{each}'" for each in named if each not in jobs]
    rules = [rule["name"] for rule in policy]
    rule_name = r"(?=.{1,128}$)[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
    said += [f"invalid rule name '{rule}'" for rule in rules if not re.fullmatch(rule_name, rule)]
    if len(set(rules)) < len(rules):
        said.append("rule names are not unique")
    reasons = {reason for rule in policy for reason in rule.get("onJobFailureReasons", [])}
    said += [f"invalid job failure reason '{each}'" for each in reasons - _REASONS]
    if "coordinator" in spec:
        first = spec["coordinator"]
        chosen, index = first["replicatedJob"], (first["jobIndex"], first["podIndex"])
        if chosen not in jobs:
            said.append(f"coordinator replicatedJob {chosen} does not exist")
        else:
            pods = jobs[chosen]["template"]["spec"]
            if pods["completionMode"] != "Indexed":
                said.append("job for coordinator pod must be indexed completion mode")
            if index[0] >= jobs[chosen]["replicas"] or index[1] >= pods["completions"]:
                said.append(f"coordinator index {index} is invalid")
        label = f"{name}-{chosen}-{index[0]}-{index[1]}.{subdomain}"
        if not re.fullmatch(r"(?=.{1,63}$)([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", label):
            said.append(f"spec will lead to invalid label value {label} for coordinator label")
    return said


_REASONS = {
    *("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded"),
    "PodFailurePolicy",
}


def _is_label(text):
    return re.fullmatch(r"(?=.{1,63}$)[a-z]([-a-z0-9]*[a-z0-9])?", text) is not None


def _verb(method, name, query):
    if method == "GET":
        return "watch" if "watch" in query else "list" if name is None else "get"
    return {"POST": "create", "DELETE": "delete"}[method]


def pod_labels(pod):
    return pod["metadata"].get("labels", {})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self._answer("GET")

    def do_POST(self):
        self._answer("POST")

    def do_DELETE(self):
        self._answer("DELETE")

    def _answer(self, method):
        cluster = self.server.cluster
        path, _, text = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text, strict_parsing=True)) if text else {}
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        try:
            with cluster.lock:
                cluster.requests.append(f"{method} {path}")
            kind, name, log = self._place(cluster, path)
            self._check_request(method, kind, name, query, log)
            if log:
                self._log(cluster, name, query)
            elif "watch" in query:
                self._watch(cluster, query)
            else:
                with cluster.lock:
                    answer = cluster.handle(method, kind, name, body, query)
                    data = json.dumps(answer).encode()
                self._send(201 if method == "POST" else 200, data)
        except Failure as failure:
            status = {"kind": "Status", "status": "Failure", "message": failure.message}
            self._send(failure.status, json.dumps(status | {"code": failure.status}).encode())

    def _place(self, cluster, path):
        core, own = re.escape("/api/v1"), re.escape(f"/apis/{cluster.group}")
        found = re.fullmatch(
            rf"(?:{core}/namespaces/{NAMESPACE}/(?P<core>secrets|pods)"
            rf"|{own}/namespaces/{NAMESPACE}/(?P<own>{cluster.kind}))"
            r"(?:/(?P<name>[a-z0-9-]+)(?P<log>/log)?)?",
            path,
        )
        if found is None:
            raise Failure(404, f"no such path: {path}")
        return found["core"] or found["own"], found["name"], bool(found["log"])

    def _check_request(self, method, kind, name, query, log):
        if self.headers.get("Authorization") != f"Bearer {BEARER}":
            raise Failure(401, "Unauthorized")
        verb = _verb(method, name, query)
        resource = f"{kind}/log" if log else kind
        if not any(resource in rule["resources"] and verb in rule["verbs"] for rule in RULES):
            raise Failure(403, f"the role does not allow to {verb} {resource}")
        if method == "POST" and self.headers.get("Content-Type") != "application/json":
            raise Failure(415, "the body of the request was in an unknown format")
        known = _QUERY["log" if log else "delete" if method == "DELETE" else "list"]
        if unknown := query.keys() - known:
            raise Failure(400, f"unknown parameters: {sorted(unknown)}")
        if kind == "pods" and method != "GET":
            raise Failure(405, "method not allowed")

    def _log(self, cluster, name, query):
        with cluster.lock:
            if name not in cluster.objects["pods"]:
                raise Failure(404, f'pods "{name}" not found')
            lines = cluster.logs.get((name, query.get("previous") == "True"), [])
            if callable(lines):
                lines = lines(query)
        self._begin("text/plain")
        for line in lines:
            self._chunk(line.encode() + b"\n")
        self._chunk(b"")

    def _watch(self, cluster, query):
        assert query["fieldSelector"].startswith("metadata.name=")
        assert int(query["timeoutSeconds"]) > 0
        with cluster.lock:
            what = cluster.watches.pop(0) if cluster.watches else "event"
        if isinstance(what, int):
            raise Failure(what, "too old resource version")
        if what == "slow":
            time.sleep(cluster.slow_s)
        self._begin("application/json")
        if what == "gone":
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            error = {"type": "ERROR", "object": status}
            self._chunk(json.dumps(error).encode() + b"\n")
        elif what == "event":
            self._chunk(json.dumps({"type": "MODIFIED", "object": {}}).encode() + b"\n")
        self._chunk(b"")

    def _begin(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data):
        with contextlib.suppress(OSError):  # a client may have heard enough
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _send(self, status, data):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def serving(cluster, folder):
    """Serves a cluster, and yields the path of a kubeconfig file for it."""
    file = Path(folder) / "kubeconfig"
    with answering(Handler, cluster=cluster) as server:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {"token": BEARER}}],
            "contexts": [
                {"name": "test", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}
            ],
        }
        file.write_text(yaml.safe_dump(config))
        yield str(file)
