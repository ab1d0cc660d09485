"""One of each translator, on a real thing where it runs here, else on a local server of the real wire format."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rusbeir.translation.translator import Translator
from tests.support import tiny_models
from tests.support import translation_servers as servers
from tests.support.asking import make_one


@pytest.fixture(autouse=True)
def users_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the user's modules, from which python:own_translators.plain is imported."""
    monkeypatch.syspath_prepend(Path(servers.__file__).parent / "users_folder")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that the local server knows; none of the user's."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", servers.GOOGLE_KEY)
    monkeypatch.setenv("DEEPL_AUTH_KEY", servers.DEEPL_KEY)
    monkeypatch.setenv("OPENAI_API_KEY", servers.OPENAI_KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[servers.TranslationServer]:
    """A server without faults, which the translator llm finds by itself."""
    with servers.TranslationServer() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{running.url}/v1")
        yield running


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A tiny model's folder; each is made once."""
    made: dict[tuple[object, ...], Path] = {}

    def folder(family: str, languages: tuple[str, ...] = (), never_ends: bool = False) -> Path:
        key = (family, languages, never_ends)
        if key not in made:
            place = tmp_path_factory.mktemp("models") / family
            made[key] = tiny_models.make(place, family, languages=languages, never_ends=never_ends)
        return made[key]

    return folder


@pytest.fixture
def memory_file(tmp_path: Path) -> Path:
    path = tmp_path / "memory.tsv"
    path.write_text("Water boils.\tВода кипит.\nIce melts.\tЛёд тает.\n", encoding="utf-8")
    return path


@pytest.fixture
def backend(
    server: servers.TranslationServer,
    tiny: Callable[..., Path],
    memory_file: Path,
    needs: Callable[[str, bool, str], None],
) -> Callable[[str], Translator]:
    """The translator of that name, ready for en -> ru (apertium en -> es)."""
    options = {
        "google": {"endpoint": server.url},
        "google-cloud": {"endpoint": server.url},
        "deepl": {"endpoint": server.url},
        "llm": {"llm": servers.MODEL},
        "memory": {"memory": memory_file},
        "apertium": {"source": "en", "target": "es"},
        "python:own_translators.plain": {},
        "python:own_translators.asynchronous": {},
    }

    def made(name: str) -> Translator:
        if "apertium" in name:
            needs("apertium", shutil.which("apertium") is not None, "apt-get install apertium-eng-spa")
        if name in {"opus-mt", "nllb", "madlad"}:
            languages = {"nllb": ("eng_Latn", "rus_Cyrl"), "madlad": ("<2ru>",)}.get(name, ())
            return make_one(name, model=str(tiny(name, languages)), source="en", target="ru")
        return make_one(name, **options[name])

    return made
