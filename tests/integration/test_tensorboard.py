"""A small real run, as TensorBoard serves it and as a browser shows it."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

pytestmark = pytest.mark.slow

SUITE = """\
suite_name: ocdbt or not
num_repeats: 2
checkpoint_config:
  spec:
    params: {dtype: float32, shape: [256, 256], sharding: [fsdp]}
mesh_config:
  mesh_axes: ["fsdp"]
  ici_parallelism: {"fsdp": 2}
benchmarks:
  - generator: save_restore
    options:
      use_ocdbt: [true, false]
      enable_trace: true
"""
STATE_BYTES = 256 * 256 * 4
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Text of the page as a reader sees it: most of TensorBoard lies in shadow roots, which neither
# --dump-dom nor document.body.innerText reaches.
TEXT_OF_PAGE = """(() => {
  const text = (node) =>
    node.nodeType === Node.TEXT_NODE ? node.textContent.trim()
    : ['SCRIPT', 'STYLE', 'TEMPLATE'].includes(node.tagName) ? ''
    : [...(node.shadowRoot ? node.shadowRoot.childNodes : []), ...node.childNodes]
        .map(text).filter(Boolean).join('\\n');
  return text(document.body);
})()"""


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensorboard")
    (folder / "suite.yaml").write_text(SUITE)
    command = [sys.executable, "-m", "orbax_bench_core.cli", "run", str(folder / "suite.yaml")]
    unset = ("XLA_FLAGS", "JAX_ENABLE_X64")
    subprocess.run(
        [*command, "--output-directory", str(folder / "out"), "--no-lock"],
        check=True,
        timeout=120,
        env={name: value for name, value in os.environ.items() if name not in unset},
    )
    return folder / "out"


class Server:
    """TensorBoard, serving one directory at `url`."""

    def __init__(self, url):
        self.url = url

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return json.load(response)

    def post(self, path, body):
        request = urllib.request.Request(
            self.url + path,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def wait_for_runs(self, count):
        deadline = time.monotonic() + 60
        while len(self.get("data/runs")) < count:
            assert time.monotonic() < deadline, f"runs: {self.get('data/runs')}"
            time.sleep(0.2)


@contextlib.contextmanager
def serving(directory, *, load_fast):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tensorboard.main", "--port", "0", "--host", "localhost"),
            *("--logdir", str(directory), f"--load_fast={load_fast}"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            found = re.search(r"at (http://\S+)", line)
            if found:
                break
        else:
            pytest.fail("TensorBoard ended without serving")
        server = Server(found.group(1))
        server.wait_for_runs(5)
        yield server
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def default_server(run_directory):
    with serving(run_directory / "tensorboard", load_fast="auto") as server:
        yield server


@pytest.fixture(scope="module")
def python_server(run_directory):
    with serving(run_directory / "tensorboard", load_fast="false") as server:
        yield server


@pytest.fixture(params=["default_server", "python_server"])
def server(request):
    """TensorBoard with each of its two loaders, which do not accept the same files."""
    return request.getfixturevalue(request.param)


def summaries(server):
    return [run for run in server.get("data/runs") if run.endswith("/__summary__")]


def session_groups(server, **column):
    body = {
        "experimentName": "",
        "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
        "colParams": [column],
        "startIndex": 0,
        "sliceSize": 100,
    }
    return server.post("data/plugin/hparams/session_groups", body)["sessionGroups"]


def test_every_point_is_a_run_per_host_and_a_summary(server):
    runs = server.get("data/runs")
    assert sum(run.endswith("/host_0") for run in runs) == 2
    assert len(summaries(server)) == 2


def test_scalars_are_served_with_a_step_per_repeat(server):
    [host, _] = [run for run in server.get("data/runs") if run.endswith("/host_0")]
    points = server.get(
        f"data/plugin/scalars/scalars?run={host.replace('/', '%2F')}&tag=save_0_basics%2Ftime_s"
    )
    assert [step for _, step, _ in points] == [0, 1]


def test_the_hparams_tab_has_one_row_per_point_with_typed_cells(server):
    cells = [group["hparams"] for group in session_groups(server, hparam="use_ocdbt")]
    assert sorted(cell["use_ocdbt"] for cell in cells) == [False, True]
    assert {cell["mesh"] for cell in cells} == {"fsdp2"}
    assert {cell["checkpoint_bytes"] for cell in cells} == {STATE_BYTES}


def test_the_hparams_tab_fills_every_metric_column(server):
    experiment = server.post("data/plugin/hparams/experiment", {"experimentName": ""})
    columns = {metric["displayName"] for metric in experiment["metricInfos"]}
    assert {"save [s]", "save [GiB/s]", "load [s]", "load [GiB/s]"} <= columns
    for group in session_groups(server, hparam="use_ocdbt"):
        assert len(group["metricValues"]) == len(experiment["metricInfos"])


@pytest.mark.parametrize("order", ["ORDER_ASC", "ORDER_DESC"])
def test_the_hparams_tab_sorts_by_a_metric(server, order):
    metric = {"group": "", "tag": "load_0_basics/time_s_median"}
    groups = session_groups(server, metric=metric, order=order)
    values = [
        cell["value"]
        for group in groups
        for cell in group["metricValues"]
        if cell["name"] == metric
    ]
    assert values == sorted(values, reverse=order == "ORDER_DESC")
    assert len(values) == 2


def test_defect_22_no_scalar_of_a_real_run_is_a_time_since_the_epoch(run_directory):
    tags = set()
    for file in Path(run_directory, "tensorboard").glob("*/host_0/*tfevents*"):
        events = EventAccumulator(str(file), size_guidance={"tensors": 0}).Reload()
        for tag in events.Tags()["tensors"]:
            tags.add(tag)
            if tag.endswith(("_s", "_ms")):
                values = [float(make_ndarray(e.tensor_proto)) for e in events.Tensors(tag)]
                assert max(map(abs, values)) < 1e6, tag
    assert "save_2_save_breakdown/total_async_s" in tags


class Browser:
    """Headless Chromium, steered through the DevTools protocol over a pair of pipes."""

    def __init__(self, profile):
        read_end, self._write = os.pipe()
        self._read, write_end = os.pipe()
        flags = (
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
            *("--disable-sync", "--disable-dev-shm-usage", "--window-size=1600,1100"),
            *(f"--user-data-dir={profile}", "--remote-debugging-pipe"),
        )
        # The protocol is spoken on descriptors 3 and 4.
        shell = f'exec "$0" "$@" 3<&{read_end} 4>&{write_end}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, CHROMIUM, *flags],
            pass_fds=(read_end, write_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_end)
        os.close(write_end)
        self._number = 0
        self._buffer = b""
        self._session = {}

    def open(self, url):
        """Shows a page in a tab of its own."""
        self._session = {}
        target = self._call("Target.createTarget", url=url)["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        return self

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._buffer:
                part = os.read(self._read, 2**16)
                assert part, "Chromium ended"
                self._buffer += part
            answer, self._buffer = self._buffer.split(b"\0", 1)
            answer = json.loads(answer)
            if answer.get("id") == self._number:
                return answer["result"]

    def text(self):
        result = self._call("Runtime.evaluate", expression=TEXT_OF_PAGE, returnByValue=True)
        return result["result"].get("value", "")

    def text_once(self, *wanted):
        """The text of the page as soon as all of `wanted` is in it."""
        deadline, reload_at = time.monotonic() + 90, time.monotonic() + 15
        while True:
            # A page that asked before the server had read the run does not ask again by itself.
            if time.monotonic() > reload_at:
                self._call("Page.reload")
                reload_at = time.monotonic() + 15
            text = self.text()
            missing = [words for words in wanted if words not in text]
            if not missing:
                return text
            assert time.monotonic() < deadline, f"not on the page: {missing}\n{text}"
            time.sleep(0.2)

    def close(self):
        with contextlib.suppress(AssertionError, OSError):
            self._session = {}
            self._call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._read)
        os.close(self._write)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


@pytest.fixture
def open_page(default_server, browser):
    return lambda address: browser.open(default_server.url + address)


def test_the_page_of_scalars_shows_a_chart_per_tag(open_page):
    text = open_page("?tagFilter=save_0_basics%2Ftime_s#timeseries").text_once(
        "save_0_basics/time_s", "Tags matching filter", "host_0"
    )
    assert "No scalar data" not in text


def test_the_page_of_hparams_lists_the_points_with_their_metrics(open_page, default_server):
    groups = session_groups(default_server, hparam="use_ocdbt")
    # The tab shows five metric columns: those of operations that move bytes come first.
    shown = re.compile(r"(save|load)_(0_basics/time_s_median|4_throughput/operation_gbps_mean)")
    values = [
        cell["value"]
        for group in groups
        for cell in group["metricValues"]
        if shown.fullmatch(cell["name"]["tag"])
    ]
    assert len(values) == 8
    names = [group["name"] for group in groups]
    text = open_page("#hparams").text_once("use_ocdbt", "load [GiB/s]", *names)
    assert [value for value in values if f"{value:#.5g}" not in text] == []


def test_the_page_of_texts_renders_the_cards(open_page):
    text = open_page("#text").text_once("at_a_glance/save", "bytes of the operation")
    assert f"{STATE_BYTES} bytes" in text
    assert "|---" not in text


def test_defect_18_the_page_of_texts_tells_data_from_metadata(open_page):
    open_page("#text&tagFilter=^inventory$").text_once(
        "ocdbt_data", "ocdbt_manifest", "zarr3_chunk", "zarr3_metadata"
    )


@pytest.mark.nightly
def test_profiler_traces_lie_where_the_profile_tab_looks(run_directory):
    traces = Path(run_directory, "tensorboard").glob("*__save/plugins/profile/*/*.xplane.pb")
    assert len(list(traces)) == 2
