"""What Kubeflow Pipelines and Argo Workflows refuse of a compiled package, in words.

A stand-in for both, whose rules are those of their source. Kubeflow Pipelines: what becomes of a
package (`backend/src/v2/compiler/argocompiler`), what fails in a driver or a launcher (`driver`,
`component/launcher_v2.go`, `objectstore/config.go`) and what a cache looks at (`cacheutils`). Argo
Workflows: `workflow/validate/validate.go`, `util/sorting`, `workflow/packer`.
"""

import dataclasses
import graphlib
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Self, TypeAlias

import yaml

LARGEST_SPEC: Final = 2**20 - 300 * 2**11 - 2**17
"""Bytes of a workflow's spec: of the 1 MiB that Argo stores at most, 300 steps of a loop take 2 KiB
each as compressed status, and the parameters of a run 128 KiB, one argument."""
_ARGUMENT: Final = 2**17 - 1
"""Bytes of one argument of a process on Linux: a driver gets each specification as one."""
_ANNOTATIONS: Final = 2**18
_SYSTEM: Final = 2**15
_OF_TASK: Final = 350
"""Bytes of the templates that every workflow has, and of a task's references to its arguments."""

_NAME: Final = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9]{0,127}")
_ARGUMENT_NAME: Final = re.compile(r"[-a-zA-Z0-9_]+")
_PIPELINE_NAME: Final = re.compile(r"(?=.{1,128}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LABEL: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_KEY: Final = re.compile(rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_LABEL.pattern}")
_TAG: Final = re.compile(
    r"\{\{(?:=|\s*(?:item|steps|inputs|outputs|pod|workflow|tasks)\.)[^}]*\}\}"
)
_INPUT: Final = re.compile(r"\{\{\$\.inputs\.parameters\[['\"]([^'\"]+)['\"]\]\}\}")
_URI: Final = re.compile(r"(^[a-z][a-z0-9]+:///?)([^/?]+)(/[^?]*)?(\?.+)?\Z")
_SCHEMES: Final = ("gs://", "s3://", "minio://", "mem://")

_DIFFER: Final = ("{{$.pipeline_job_uuid}}", "{{$.pipeline_job_resource_name}}")
"""Placeholders that no two runs have alike. A driver resolves a constant that is one of them and
nothing else, and only then computes the key of the cache."""
_FOR_HOSTS: Final = {
    "nodeSelector": "KUBERNETES_NODE_SELECTOR",
    "tolerations": "KUBERNETES_TOLERATIONS",
    "accelerator": "RESOURCES",
}
"""What is set on a task that launches hosts, for them, by the name under which it is handed on."""

Spec: TypeAlias = Mapping[str, Any]


def violations(package: str, *, by_construction: bool = False) -> list[str]:
    """Returns what a service would refuse of a package, or would not do as it says.

    Args:
        package: The YAML that kfp compiles, of one document or two.
        by_construction: Whether tasks must be safe from a cache also where caching is switched on,
            as a submission can for all of them.
    """
    workflow = Workflow.of(package)
    return [
        *workflow.found,
        *_of_graph(workflow),
        *_of_names(workflow),
        *_of_sizes(workflow),
        *_of_steps(workflow),
        *_of_caching(workflow.spec, by_construction),
    ]


def refused_uri(uri: str, root: str | None = None) -> str | None:
    """Returns why Kubeflow's launcher fails a step for the URI of an artifact; None if it does not.

    Args:
        uri: The URI of an input, or of an output where a step has set another one.
        root: The pipeline root, for an output: one in an object store must lie below it.
    """
    if uri.startswith("oci://"):
        return None
    parts = _URI.search(uri)
    if parts is None:
        return f"parse bucket config failed: unrecognized uri format: {uri!r}"
    if parts[1] not in _SCHEMES:
        return f"parse bucket config failed: unsupported Cloud bucket: {uri!r}"
    below = (root or parts[1] + parts[2]).rstrip("/")
    if not uri.startswith(below):
        return f"URI {uri!r} does not have expected bucket prefix {below!r}"
    if not uri.removeprefix(below).lstrip("/"):
        return f"URI {uri!r} has empty key given prefixed bucket {below!r}"
    return None


@dataclasses.dataclass
class Workflow:
    """A workflow of Argo, of which only what rules look at is there.

    Attributes:
        spec: The package it was made from.
        pods: What concerns Kubernetes, by executor.
        templates: Tasks of each template, by its name.
        arguments: Arguments of the workflow: each specification once, as JSON.
        found: What the compiler refuses.
    """

    spec: Spec
    pods: Spec = dataclasses.field(default_factory=dict)
    templates: dict[str, list[dict[str, Any]]] = dataclasses.field(default_factory=dict)
    arguments: dict[str, str] = dataclasses.field(default_factory=dict)
    found: list[str] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, package: str) -> Self:
        """Translates a package as Kubeflow's compiler to Argo does."""
        spec, *others = yaml.load_all(package, Loader=yaml.CSafeLoader)
        kubernetes = others[0]["platforms"]["kubernetes"] if others else {}
        workflow = cls(spec, kubernetes.get("deploymentSpec", {}).get("executors", {}))
        workflow._visit("root", spec["root"], set())
        return workflow

    @property
    def bytes(self) -> int:
        """How many bytes its spec has as JSON, rather too many than too few."""
        tasks = sum(map(len, self.templates.values()))
        return len(json.dumps([self.templates, self.arguments])) + _OF_TASK * tasks + _SYSTEM

    def _visit(self, name: str, component: Spec, seen: set[str]) -> None:
        seen.add(name)
        tasks = component.get("dag", {}).get("tasks", {})
        for _, task in sorted(tasks.items()):
            inner = task["componentRef"]["name"]
            if inner not in seen:
                self._visit(inner, self.spec["components"][inner], seen)
        if "dag" in component:
            self._save(f"components-{name}", component)
            self._dag(name, tasks)
            return
        label = component["executorLabel"]
        executor = self.spec["deploymentSpec"]["executors"][label]
        text = json.dumps(executor, sort_keys=True)
        hashed = hashlib.sha256(text.encode()).hexdigest() if "container" in executor else name
        others = {key: value for key, value in component.items() if key != "executorLabel"}
        self._save(f"components-{hashed}", others)
        self._save(f"implementations-{hashed}", executor)
        if label in self.pods:
            self._save(f"kubernetes-{name}", self.pods[label])

    def _save(self, name: str, message: Spec) -> None:
        text = json.dumps(message, sort_keys=True)
        if self.arguments.setdefault(name, text) != text:
            self.found.append(f"the same container has inputs of two kinds: {text}")

    def _add(self, name: str, tasks: list[dict[str, Any]]) -> None:
        if name in self.templates:
            self.found.append(f"template name={name!r}: template already exists")
        self.templates[name] = tasks

    def _dag(self, name: str, tasks: Spec) -> None:
        """Makes a template of a DAG, and one of each exit task: a hook of what it depends on."""
        hooks: dict[str, str] = {}
        made: list[dict[str, Any]] = []
        for key, task in sorted(tasks.items()):
            if _is_exit(task):
                hook = f"exit-hook-{name}-{key}"
                self.found += _of_exit_task(key, task, tasks, hooks)
                hooks |= dict.fromkeys(_dependencies(task), hook)
                self._add(hook, self._task(key, task))
        for key, task in sorted(tasks.items()):
            if not _is_exit(task):
                made += self._task(key, task, hooks.get(key))
        self._add(name, made)

    def _task(
        self, name: str, task: Spec, hook: str | None = None, *, iteration: bool = False
    ) -> list[dict[str, Any]]:
        """Returns what becomes of a task: its driver, and its executor or its DAG."""
        inner, depends = task["componentRef"]["name"], _dependencies(task)
        component = self.spec["components"][inner]
        if "parameterIterator" in task and not iteration:
            self._add(f"{inner}-iteration", self._task("iteration-item", task, iteration=True))
            loop = [
                _argo("iteration-driver", "system-dag-driver", task=task),
                _argo("iteration-iterations", f"{inner}-iteration", ["iteration-driver"]),
            ]
            self._add(f"{inner}-{name}-iterator", loop)
            return [_argo(name, f"{inner}-{name}-iterator", depends)]  # its hook is lost
        before = [] if iteration or _is_exit(task) else depends
        pod = self.pods.get(component.get("executorLabel", ""), {}).get("podMetadata")
        if "dag" in component:
            driver, template = "system-dag-driver", inner
        elif "container" in self.spec["deploymentSpec"]["executors"][component["executorLabel"]]:
            driver, template = "system-container-driver", "system-container-executor"
        else:
            return [_argo(name, "system-importer", task=task)]
        return [
            _argo(f"{name}-driver", driver, before, task=task),
            _argo(name, template, [f"{name}-driver"], hook=hook, pod=pod),
        ]


def _argo(name: str, template: str, depends: Collection[str] = (), **others: Any) -> dict[str, Any]:
    given = {key: value for key, value in others.items() if value is not None}
    return {"name": name, "template": template, "depends": list(depends), **given}


def _is_exit(task: Spec) -> bool:
    strategy = task.get("triggerPolicy", {}).get("strategy")
    return bool(strategy == "ALL_UPSTREAM_TASKS_COMPLETED")


def _dependencies(task: Spec) -> list[str]:
    return sorted({*task.get("dependentTasks", ()), *_producers(task)})


def _producers(task: Spec) -> set[str]:
    """Returns the tasks whose outputs a task takes."""
    given = [each for kind in task.get("inputs", {}).values() for each in kind.values()]
    kinds = ("taskOutputParameter", "taskOutputArtifact")
    return {each[kind]["producerTask"] for each in given for kind in kinds if kind in each}


def _of_exit_task(name: str, task: Spec, tasks: Spec, hooks: Spec) -> Iterator[str]:
    """Yields what is wrong with a task that is to run whatever becomes of others."""
    depends = _dependencies(task)
    if len(depends) != 1:
        yield f"{name} is a hook of {len(depends)} tasks {depends}: it would run once for each"
    for before in depends:
        if before in hooks:
            yield f"{before} has two hooks: one of {name} and {hooks[before]} would never run"
        other = tasks.get(before, {})
        if "parameterIterator" in other:
            yield f"{name} is a hook of the loop {before}: it would never run"
        elif not other.get("componentRef", {}).get("name", "").startswith("comp-exit-handler"):
            yield f"{name} is a hook of {before}, no exit handler: lost where its driver fails"
    for producer in sorted(_producers(task)):
        yield f"{name} runs whatever becomes of {producer}, and takes an output of it"


def _of_graph(workflow: Workflow) -> Iterator[str]:
    """Yields what Argo's validation says of the graph of each template."""
    for template, made in workflow.templates.items():
        failed = f"templates.{template} sorting failed"
        names = [task["name"] for task in made]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{failed}: duplicated nodeName {name}"
        for before in sorted({name for task in made for name in task["depends"]} - set(names)):
            yield f"{failed}: invalid dependency {before}"
        try:
            graphlib.TopologicalSorter({task["name"]: task["depends"] for task in made}).prepare()
        except graphlib.CycleError:
            yield f"{failed}: graph with cycle"
    for dag, tasks in _dags(workflow.spec):
        for name, task in tasks.items():
            for before in _dependencies(task):
                if tasks.get(before, {}).get("triggerPolicy", {}).get("condition"):
                    yield f"{dag}: {name} is left out where the condition of {before} is false"


def _of_names(workflow: Workflow) -> Iterator[str]:
    name = workflow.spec["pipelineInfo"]["name"]
    if not _PIPELINE_NAME.fullmatch(name):
        yield f"pipeline: name {name!r} is invalid"
    texts = dict(workflow.arguments)
    for template, made in workflow.templates.items():
        for name in (template, *(task["name"] for task in made)):
            if not _NAME.fullmatch(name):
                yield f"templates.{template}: name {name!r} is invalid"
            if name[0].isdigit():
                yield f"templates.{template}: name {name!r} cannot begin with a digit"
        texts |= {f"{template}.{task['name']}": json.dumps(task) for task in made}
    for name in workflow.arguments:
        if not _ARGUMENT_NAME.fullmatch(name):
            yield f"spec.arguments: name {name!r} is invalid"
    for name, text in texts.items():
        yield from (
            f"{name}: Argo would resolve {tag[0]}, or fail to" for tag in _TAG.finditer(text)
        )
        if len(text.encode()) > _ARGUMENT:
            yield f"{name}: argument list too long: {len(text.encode())} bytes"


def _of_sizes(workflow: Workflow) -> Iterator[str]:
    if workflow.bytes > LARGEST_SPEC:
        yield f"workflow is longer than maximum allowed size: {workflow.bytes} > {LARGEST_SPEC}"
    for executor, pod in workflow.pods.items():
        metadata = pod.get("podMetadata", {})
        for key, value in metadata.get("labels", {}).items():
            if not _LABEL_KEY.fullmatch(key) or not (value == "" or _LABEL.fullmatch(value)):
                yield f"{executor}: label {key}={value} is invalid"
        size = len("".join(map("".join, metadata.get("annotations", {}).items())).encode())
        if size > _ANNOTATIONS:
            yield f"{executor}: annotations are too long: {size} > {_ANNOTATIONS}"


def _dags(spec: Spec) -> Iterator[tuple[str, Spec]]:
    for name, component in {"root": spec["root"], **spec.get("components", {})}.items():
        if "dag" in component:
            yield name, component["dag"]["tasks"]


def _steps(spec: Spec) -> Iterator[tuple[str, str, Spec, Spec]]:
    """Yields DAG, name, inputs and component of every task that is a container."""
    for dag, tasks in _dags(spec):
        for name, task in tasks.items():
            component = spec["components"][task["componentRef"]["name"]]
            if "executorLabel" in component:
                yield dag, name, task.get("inputs", {}).get("parameters", {}), component


def _of_steps(workflow: Workflow) -> Iterator[str]:
    """Yields what a driver cannot fill in, and what does not reach the hosts of a step."""
    for dag, name, given, component in _steps(workflow.spec):
        label = component["executorLabel"]
        executor = workflow.spec["deploymentSpec"]["executors"][label]
        container = executor.get("container", {})
        for text in (*container.get("command", ()), *container.get("args", ())):
            # What is wanted only where it is present is left out without it.
            wanted = () if text.startswith('{"IfPresent":') else _INPUT.findall(text)
            for lacking in sorted(set(wanted) - set(given)):
                yield f"{dag}: {name}: parameter {lacking!r} not found in executor input"
        if given.get("launcher", {}).get("runtimeValue", {}).get("constant") == "jobset":
            passed = {each["field"] for each in component.get("taskConfigPassthroughs", ())}
            own = {**container.get("resources", {}), **workflow.pods.get(label, {})}
            for key in sorted(own.keys() & _FOR_HOSTS.keys()):
                if _FOR_HOSTS[key] not in passed:
                    yield f"{dag}: {name} keeps {key} of its task, which its hosts do not get"


def _of_caching(spec: Spec, by_construction: bool) -> Iterator[str]:
    """Yields the steps that a second run with the same parameters would get out of a cache.

    Artifacts are left out, though the cache of Kubeflow knows each by its id in the metadata store:
    one that is new differs, and whether it is new depends on the step that makes it.
    """
    callers: dict[str, list[tuple[str, Spec]]] = {}
    for dag, tasks in _dags(spec):
        for task in tasks.values():
            given = task.get("inputs", {}).get("parameters", {})
            callers.setdefault(task["componentRef"]["name"], []).append((dag, given))

    def differs(given: Spec, dag: str) -> bool:
        if "parameterExpressionSelector" in given:
            return False
        if "componentInputParameter" in given:
            name = given["componentInputParameter"]
            return any(callers.get(dag, ())) and all(
                differs(inputs.get(name, {}), outer) for outer, inputs in callers[dag]
            )
        # How other tasks ended comes with the name of the run.
        return "taskFinalStatus" in given or (
            given.get("runtimeValue", {}).get("constant") in _DIFFER
        )

    for dag, tasks in _dags(spec):
        for name, task in tasks.items():
            options = task.get("cachingOptions", {})
            inner = spec["components"][task["componentRef"]["name"]]
            if "dag" in inner or not (by_construction or options.get("enableCache")):
                continue
            given = task.get("inputs", {}).get("parameters", {}).values()
            if "cacheKey" in options or not any(differs(each, dag) for each in given):
                yield f"{dag}: {name} has no input that differs per run: a cache would serve it"
