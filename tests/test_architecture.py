"""Imports point one way, `import rusbeir` stays light, and what is said of the code can be read alone."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "rusbeir"

# A room imports from itself and from the floors below, never from its own floor's other rooms or from above.
FLOORS = [
    {"types", "errors", "text", "notebook"},
    {"storage", "user_sources", "sentences", "pages"},
    {"processes", "cluster", "languages", "costs"},
    {"analysis", "datasets", "jobs"},
    {"translation", "retrieval", "evaluation", "ledger"},
    {"experiment", "tuning"},
    {"comparison", "diagnostics", "synthesis", "nano", "audit", "mteb", "pyterrier", "forecast", "reproduction"},
    {"people", "airbench", "language_trials", "site"},
    {"publishing"},
    {"cli"},
]
CACHE = PACKAGE.parent / ".mypy_cache"
"""What `mypy --strict rusbeir` has found in the package before, so that only the user's file is new."""
DANGLING = re.compile(r"(Of|At|With|As|In|By|The same)\b")
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def _imports(path: Path) -> set[str]:
    """The rooms of rusbeir that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "rusbeir" and len(parts) > 1 and parts[1] in FLOOR:
                found.add(parts[1])
    return found


def test_arrows_of_retrieval():
    """Which part of retrieval imports which; the lexical part takes the server's mappings lazily."""
    parts = {"encoding", "lexical", "elasticsearch", "dense", "sparse", "late", "rerank"}
    arrows: dict[str, set[str]] = {part: set() for part in parts}
    for part in parts:
        for path in (PACKAGE / "retrieval" / part).glob("*.py"):
            names = set(re.findall(r"from rusbeir\.retrieval\.(\w+)", path.read_text(encoding="utf-8")))
            arrows[part] |= names & parts - {part}
    assert arrows == {
        "encoding": set(),
        "lexical": {"elasticsearch"},
        "elasticsearch": {"encoding", "lexical"},
        "dense": {"encoding", "lexical", "elasticsearch"},
        "sparse": {"encoding"},
        "late": {"encoding", "rerank"},
        "rerank": {"encoding"},
    }


def test_imports_point_one_way():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        room = parts[0]
        if room == "__init__":
            continue
        assert room in FLOOR, f"{path} is in no room of docs/architecture.md"
        wrong += [
            f"{path}: {room} imports {other}"
            for other in _imports(path)
            if other != room and FLOOR[other] >= FLOOR[room] and not (FLOOR[room] == 0 and FLOOR[other] == 0)
        ]
    assert wrong == []


def test_messages_name_an_extra_that_has_the_package():
    """What `require` and its kin say is installed by the extra, by the core, or is a package of its own."""
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    distributions = {"yaml": "pyyaml", "faiss": "faiss-cpu"}
    second_hand = {("mteb", "datasets")}

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[^\w.-]", text)[0].lower() for text in requirements}

    wrong = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            function = node.func if isinstance(node, ast.Call) else None
            if not isinstance(function, ast.Name) or function.id not in ("require", "require_version", "missing_extra"):
                continue
            module, _, extra = [*(getattr(argument, "value", None) for argument in node.args), None, None, None][:3]
            if not isinstance(module, str) or not isinstance(extra, str):
                continue
            package = distributions.get(module, module.partition(".")[0]).replace("_", "-").lower()
            known = names(project["dependencies"]) | names(project["optional-dependencies"].get(extra, []))
            if package not in known and (extra, package) not in second_hand:
                wrong.append(f"{path}: rusbeir[{extra}] does not install {package}")
    assert wrong == []


def test_rooms_are_entered_by_their_doors():
    """A room's `__init__.pyi` lists what others may import; nothing is imported past it."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"cli"}
    past = []
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
            if parts[:1] == ["rusbeir"] and len(parts) > 2 and parts[1] in rooms - {own}:
                past.append(f"{path}:{node.lineno}: {node.module}")
    assert past == []
    for room in rooms:
        door = importlib.import_module(f"rusbeir.{room}")
        assert door.__all__, room
        assert all(hasattr(door, name) for name in door.__all__), room


def test_translation_lends_little():
    """The names that other rooms but the command line take from translation: 87 before they had homes of their own."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] not in ("translation", "cli"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module == "rusbeir.translation":
                    names |= {(path, alias.name) for alias in node.names}
    assert len(names) <= 45
    assert not {path.relative_to(PACKAGE).parts[0] for path, _ in names} & {"nano", "publishing"}


VAGUE = {"one", "found", "place", "places", "told", "kept", "given", "wanted", "asked", "said", "own"}
JSON_KEYS = {"asked", "found", "place", "told", "said"}
"""Fields of dataclasses and NamedTuples that are written to files under their names."""


def test_variables_are_nouns_for_what_they_hold():
    vague = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        fields = {id(node.target) for owner in ast.walk(tree) if isinstance(owner, ast.ClassDef)
                  for node in owner.body if isinstance(node, ast.AnnAssign)}  # fmt: skip
        for node in ast.walk(tree):
            is_stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            name = node.id if is_stored else node.arg if isinstance(node, ast.arg) else ""
            if name in VAGUE - (JSON_KEYS if id(node) in fields else set()):
                vague.append(f"{path}:{node.lineno}: {name}")
    assert vague == []


MOST_LINES, MOST_PARAMETERS = 60, 10


def test_functions_are_short_and_take_few_parameters():
    """Docstrings do not count, nor do the options of commands, and of what users call: editors show them one by one."""
    package = importlib.import_module("rusbeir")
    exported = [*(getattr(package, name) for name in package.__all__), package.Dataset.of]
    public = {(inspect.getsourcefile(item), item.__name__) for item in exported if inspect.isroutine(item)}
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        is_command = path.relative_to(PACKAGE).parts[0] == "cli"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            has_options = is_command or (str(path), node.name) in public
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            n_parameters = len(names) - (names[:1] in (["self"], ["cls"]))
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            lines += 0 if has_options else node.body[0].lineno - node.lineno
            if lines > MOST_LINES:
                wrong.append(f"{path}:{node.lineno}: {node.name} has {lines} lines")
            if n_parameters > MOST_PARAMETERS and not has_options:
                wrong.append(f"{path}:{node.lineno}: {node.name} has {n_parameters} parameters")
    assert wrong == []


def test_descriptions_can_be_read_alone():
    """None begins with what its subject is missing from, such as "Of a document" or "The same of a reranker"."""
    dangling = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for statement in body if isinstance(body := getattr(node, "body", None), list) else []:
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    text = statement.value.value
                    if isinstance(text, str) and DANGLING.match(text):
                        dangling.append(f"{path}:{statement.lineno}: {text.splitlines()[0]}")
    assert dangling == []


def test_the_page_names_files_that_exist():
    """docs/architecture.md: every path, every folder of the tree, and every room and its floor."""
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:rusbeir|analyzers|benchmarks|tests|translation|es_mappings)/[^`*]*)`", page))
    assert len(paths) > 30
    assert [path for path in sorted(paths) if not (PACKAGE.parent / path).exists() and "_data" not in path] == []
    parents: list[str] = []
    tree = set()
    for indent, name in re.findall(r"^([│ ]*)[├└]── (\w+)/", page, re.MULTILINE):
        parents[len(indent) // 4 :] = [name]
        tree.add(PACKAGE.joinpath(*parents))
    assert {path.parent for path in PACKAGE.rglob("*/__init__.py")} <= tree
    assert all(folder.is_dir() for folder in tree)
    floors = {path: int(floor) for floor, cell in re.findall(r"^\| (\d+) \| (.*?) \|", page, re.MULTILINE)
              for path in re.findall(r"`rusbeir/(\w+)", cell)}  # fmt: skip
    assert floors == {room: floor + 1 for room, floor in FLOOR.items() if _exists(room)}


def _exists(room: str) -> bool:
    return (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").exists()


def test_import_loads_nothing_heavy(tmp_path):
    """Nor does a bench of BM25 load what other systems need."""
    code = "import sys, rusbeir; print(*sys.modules); rusbeir.bench('mini/ru', out=sys.argv[1]); print(*sys.modules)"
    command = [sys.executable, "-c", code, tmp_path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    imported, measured = (set(line.split()) for line in printed.splitlines())
    assert not imported & {
        "numpy",
        "tantivy",
        "bm25s",
        "pymorphy3",
        "typer",
        "rich",
        "regex",
        "orjson",
        "requests",
        "torch",
    }
    assert not measured & {"bm25s", "scipy", "requests", "torch"}


def test_public_names():
    """Every name that `rusbeir` exports can be imported."""
    import rusbeir

    names = set(rusbeir.__all__)
    assert set(dir(rusbeir)) == names
    assert all(getattr(rusbeir, name) is not None for name in names)


USER_FILE = """
import rusbeir

reveal_type(rusbeir.load("mini/ru"))
reveal_type(rusbeir.bench("mini/ru", measures="nDCG@10", out="results"))
reveal_type(rusbeir.search("mini/ru", queries="вода"))
reveal_type(rusbeir.Dataset.of([rusbeir.Doc("d1", "x")], {"q1": "x"}, {"q1": {"d1": 1}}, language="ru"))
rusbeir.bench("mini/ru", sistem="bm25")
rusbeir.port("mini/en", to="ru", out="out", translator="llm", lmm="qwen3-30b")
rusbeir.port("mini/en", to="ru", out="out", translator="google", retries="three")
rusbeir.load("mini/ru", langauge="ru")
rusbeir.audit_port(folder=7)
rusbeir.audit_port("out", retires=3)
rusbeir.port("mini/en", to="ru", out="out", memori="pairs.tsv")
rusbeir.tune("mini/ru", 7)
try:
    rusbeir.read_run("run")
except rusbeir.BadInput as error:
    reveal_type(error)

class Words:
    signature = "words"
    def analyze(self, text: str) -> list[str]:
        return text.split()

class Letters:
    signature = "letters"
    def analyze(self, text: str) -> str:
        return text

good: rusbeir.TextAnalyzer = Words()
bad: rusbeir.TextAnalyzer = Letters()
"""
TOLD = [
    # the line of the user's file, what mypy says of it
    ("rusbeir.load", 'Revealed type is "rusbeir.types.Dataset"'),
    ("rusbeir.bench", 'Revealed type is "rusbeir.notebook.ShownRow"'),
    ("rusbeir.search", "Mapping["),
    ("rusbeir.Dataset.of", 'Revealed type is "rusbeir.types.Dataset"'),
    ("sistem=", 'No overload variant of "bench" matches argument types'),
    ("lmm=", 'Unexpected keyword argument "lmm" for "port"'),
    ('retries="', 'Argument "retries" to "port" has incompatible type "str"'),
    ("langauge=", 'Unexpected keyword argument "langauge" for "load"'),
    ("folder=7", 'Argument "folder" to "audit_port" has incompatible type "int"'),
    ("retires=", 'Unexpected keyword argument "retires" for "audit_port"'),
    ("memori=", 'Unexpected keyword argument "memori" for "port"'),
    ("tune(", 'Argument 2 to "tune" has incompatible type "int"'),
    ("reveal_type(error)", 'Revealed type is "rusbeir.errors.BadInput"'),
    ("bad:", "Incompatible types in assignment"),
]


def test_a_users_file_under_mypy(tmp_path):
    """Types reach a user who installed the package: py.typed is there, and lazy names have their types."""
    (tmp_path / "mine.py").write_text(USER_FILE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", CACHE, "mine.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
    )
    lines = USER_FILE.splitlines()
    told = [(int(line.split(":")[1]), line) for line in done.stdout.splitlines()]
    for part, message in TOLD:
        number = next(number for number, line in enumerate(lines, 1) if part in line)
        assert any(at == number and message in line for at, line in told), f"{part}: {done.stdout}"
    expected = {number for number, line in enumerate(lines, 1) if any(part in line for part, _ in TOLD)}
    assert {at for at, _ in told} == expected, done.stdout
