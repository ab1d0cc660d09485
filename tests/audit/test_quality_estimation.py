"""Quality estimation of a port: by functions, programs and files; in reports, gates, cleaning and samples."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rusbeir.audit import audit_port, parse_gates
from rusbeir.audit.port_checks.cleaning import plan_cleaning
from rusbeir.audit.quality_estimation.programs import Program
from rusbeir.audit.quality_estimation.sources import MODELS, parse_sources
from rusbeir.cli.audit_report import print_report
from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.people.sampling import draw_rows
from tests.support.small_port import records

FUNCTION = """
CALLS = []

def share(pairs, source, target):
    CALLS.append(len(pairs))
    return [None if text == "mountain lake morning" else len(translation) / 100 for text, translation in pairs]

def few(pairs, source, target):
    return [0.5]

def fails(pairs, source, target):
    raise ValueError("no model")
"""
PROGRAM = """
import json, sys
languages = json.loads(sys.stdin.readline())
print(json.dumps({"signature": "length of " + languages["target"]}), flush=True)
for n, line in enumerate(sys.stdin):
    pairs = json.loads(line)
    if sys.argv[1:] == ["dies"]:
        print("out of memory", file=sys.stderr)
        sys.exit(1)
    scores = [len(translation) / 100 for _, translation in pairs]
    print(json.dumps({"text": scores, "nan": ["much"] * len(pairs)}.get("".join(sys.argv[1:]), scores)), flush=True)
"""


@pytest.fixture
def program(tmp_path) -> Path:
    (tmp_path / "estimator.py").write_text(PROGRAM)
    return tmp_path / "estimator.py"


@pytest.fixture
def function(tmp_path, monkeypatch) -> str:
    """A module in the current folder, under a name that no other test imports."""
    name = f"scorer_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"python:{name}"


def check(folder: Path, *qe: str, **options):
    return audit_port(folder, source=folder.parent / "small", processes=1, round_trip=False, qe=qe, **options)


def test_a_function(make_port, function):
    folder = make_port()
    report = check(folder, f"{function}.share")
    quality = report["qe"]["share"]
    assert quality["signature"].startswith(f"{function}.share|source:")
    assert quality["missing"] == 1
    rows = records(folder / "qa" / "segments.jsonl")
    scores = [row["qe"]["share"] for row in rows]
    assert scores == [
        None if row["source"] == "mountain lake morning" else len(row["translation"]) / 100 for row in rows
    ]
    known = [score for score in scores if score is not None]
    assert quality["levels"]["segments"]["n"] == len(known) == 8
    assert quality["levels"]["segments"]["mean"] == pytest.approx(sum(known) / 8)
    assert quality["levels"]["queries"]["n"] == 1, "the other query has no score"
    assert [row["qe"]["share"] for row in quality["worst"]] == sorted(known)
    texts = {row["id"]: row for row in records(folder / "qa" / "texts.jsonl")}
    of_d1 = [(len(row["source"]), row["qe"]["share"]) for row in rows if row["id"] == "d1"]
    assert texts["d1"]["qe"]["share"] == pytest.approx(sum(n * score for n, score in of_d1) / sum(n for n, _ in of_d1))
    assert texts["q2"]["qe"]["share"] is None
    # Whatever was scored is kept, and not scored again.
    calls = sys.modules[function.removeprefix("python:")].CALLS
    n_calls = len(calls)
    assert check(folder, f"{function}.share")["qe"] == report["qe"]
    assert len(calls) == n_calls


def test_a_program(make_port, program):
    folder = make_port()
    report = check(folder, f"length=command:{sys.executable} {program}")
    assert report["qe"]["length"]["signature"] == "lengthofru"
    rows = records(folder / "qa" / "segments.jsonl")
    assert [row["qe"]["length"] for row in rows] == [len(row["translation"]) / 100 for row in rows]


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("{program} dies", "ended before it had scored everything: out of memory"),
        ("{program} nan", "gave 'much' as a score"),
        ("-c 'print(5)'", "the first line must be"),
        ("-c 'print(\"hello\")'", "'hello\\\\n' is not JSON"),
        ("-c 'import sys; sys.exit(\"no such model\")'", "no such model"),
    ],
)
def test_programs_that_fail(make_port, program, ending, message):
    folder = make_port()
    with pytest.raises(BackendError, match=message):
        check(folder, f"x=command:{sys.executable} {ending.format(program=program)}")
    assert not (folder / "qa" / "report.json").exists()


def test_functions_that_fail(make_port, function):
    folder = make_port()
    with pytest.raises(BackendError, match="must give a list of"):
        check(folder, f"{function}.few")
    with pytest.raises(BackendError, match="fails when it scores translations: ValueError: no model in"):
        check(folder, f"{function}.fails")
    with pytest.raises(BadInput, match="cannot be imported"):
        check(folder, "python:no_such_module.score")
    with pytest.raises(BadInput, match="There is no program 'no-such-program'"):
        check(folder, "command:no-such-program")


def name_rows(rows: list[dict], **columns: str) -> list[dict]:
    return [{new: row[old] for new, old in columns.items()} for row in rows]


def test_files_of_scores(make_port, tmp_path):
    """By order, as WMT has them, by the names of segments, and by texts; each gives its scores to the same segments."""
    folder = make_port()
    check(folder)
    rows = records(folder / "qa" / "segments.jsonl")
    in_order = tmp_path / "CometKiwi.seg.score"
    in_order.write_text("".join(f"mine\t{n / 10 if n else None}\n" for n in range(len(rows))))
    lines = tmp_path / "lines.jsonl"
    named = [{key: row[key] for key in ("kind", "id", "field", "segment")} for row in rows]
    scored = [{**row, "score": n / 10 if n else None} for n, row in enumerate(named)]
    lines.write_text("".join(json.dumps(row) + "\n" for row in reversed(scored)))
    table = tmp_path / "table.tsv"
    names = ["/".join(str(value) for value in row.values()) for row in named]
    table.write_text("segment\tscore\n" + "".join(f"{name}\t{n / 10}\n" for n, name in enumerate(names) if n))
    texts = tmp_path / "texts.tsv"
    texts.write_text("segment\tscore\nd1\t0.3\nquery/q1\t0.9\n")
    report = check(folder, str(in_order), str(lines), f"Table={table}", str(texts))
    assert list(report["qe"]) == ["cometkiwi", "lines", "table", "texts"]
    for row, n in zip(records(folder / "qa" / "segments.jsonl"), range(len(rows)), strict=True):
        scores = [row["qe"][name] for name in ("cometkiwi", "lines", "table")]
        assert scores == ([n / 10] * 3 if n else [None] * 3)
        assert row["qe"]["texts"] == {"d1": 0.3, "q1": 0.9}.get(row["id"])
    levels = report["qe"]["texts"]["levels"]["documents"]
    assert levels == pytest.approx({"n": 1, "mean": 0.3, "p5": 0.3, "p25": 0.3, "p50": 0.3, "p75": 0.3})
    assert report["qe"]["cometkiwi"]["signature"].startswith("file:CometKiwi.seg.score@")


FILES = [
    ("a.seg.score", "mine\t1\nmine\t2\n", "2 scores and names no segments; the port has 9"),
    ("a.seg.score", "A\t1\nB\t2\n", "scores of 2 systems"),
    ("a.tsv", "segment\tscore\nx9\t1\n", "names no segment of this port; its first is 'x9'"),
    ("a.tsv", "segment\tscore\nd1\tgood\n", "'good' is not a score"),
]


@pytest.mark.parametrize(("name", "content", "message"), FILES)
def test_files_of_other_segments(make_port, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(BadInput, match=message):
        check(make_port(), str(tmp_path / name))


def test_gates_and_cleaning(make_port, tmp_path, capsys):
    folder = make_port()
    (tmp_path / "kiwi.tsv").write_text("segment\tscore\nd1\t0.8\nd2\t0.3\nd3\t0.9\nq1\t0.7\nq2\t0.2\n")
    gates = parse_gates("qe.kiwi>=0.9,qe.kiwi.queries>=0.4,qe.kiwi.documents>0.5")
    report = check(folder, str(tmp_path / "kiwi.tsv"), gates=gates)
    assert [line.partition(" does")[0] for line in report["gates"]["failed"]] == ["qe.kiwi>=0.9"]
    print_report(report)
    assert "kiwi                documents" in capsys.readouterr().out
    page = (folder / "qa" / "report.html").read_text()
    assert "Segments with the lowest scores of kiwi" in page
    plan = plan_cleaning(folder, flags=["qe.kiwi<0.5", "empty"])
    assert [row["id"] for row in plan["documents"]] == ["d2"]
    assert {row["id"]: row["flags"] for row in plan["queries"]} == {"q2": ["qe.kiwi<0.5"]}
    with pytest.raises(UnknownName, match=r"qe\.other"):
        plan_cleaning(folder, flags=["qe.other<0.5"])
    with pytest.raises(UnknownName, match=r"figure to gate by 'qe\.kiwi'"):
        check(folder, gates=gates)


def test_samples_are_stratified_by_quality():
    """A sample of few texts has the worst by quality estimation, whatever their chrF says."""
    rows = [
        {"kind": "document", "id": f"d{n}", "chars": 100, "flags": [], "chrF": 50.0, "qe": {"kiwi": n / 100}}
        for n in range(100)
    ]
    n_parts = [
        len({stratum.decile for stratum, _ in draw_rows(sample, 40, seed=0).values()})
        for sample in (rows, [{**row, "qe": {}} for row in rows])
    ]
    assert n_parts == [10, 1]


SOURCES = [
    ("cometkiwi", "cometkiwi"),
    ("kiwi=cometkiwi(model=Unbabel/wmt23-cometkiwi-da-xl)", "kiwi"),
    ("XL=xcomet(python=/opt/comet/bin/python,devices=1)", "xl"),
    ("python:pkg.mod.score", "score"),
    ("command:'my program' --fast", "fast"),
]


@pytest.mark.parametrize(("text", "name"), SOURCES)
def test_names_of_sources(text, name):
    (source,) = parse_sources([text])
    assert source.name == name


def test_known_models_are_started_in_their_own_environment(monkeypatch):
    monkeypatch.setenv("RUSBEIR_QE_PYTHON", "/opt/comet/bin/python")
    kiwi, metricx, other = (
        source.source.command
        for source in parse_sources(["cometkiwi", "metricx(repository=/src/metricx)", "k=cometkiwi(python=/x/python)"])
    )
    assert kiwi[0] == "/opt/comet/bin/python"
    assert Path(kiwi[1]).is_file()
    assert kiwi[2:] == ("Unbabel/wmt22-cometkiwi-da", "0")
    assert Path(metricx[1]).is_file()
    assert metricx[2:] == ("google/metricx-24-hybrid-large-v2p6", "google/mt5-xl", "/src/metricx")
    assert other[0] == "/x/python"


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (["cometkivi"], UnknownName, "No quality estimation 'cometkivi'"),
        (["cometkiwi", "cometkiwi"], BadInput, "'cometkiwi' is there twice"),
        (["cometkiwi(size=xl)"], BadInput, "has no option 'size=xl'"),
        (["cometkiwi(devices=all)"], BadInput, "devices to be a number"),
        (["command:"], BadInput, "needs the program"),
        (["command:'open"], BadInput, "cannot be read"),
    ],
)
def test_names_that_are_refused(texts, error, message):
    with pytest.raises(error, match=message):
        parse_sources(texts)


COMET = """
from types import SimpleNamespace

def download_model(name):
    print("Downloading", name)
    return name

def load_from_checkpoint(path):
    def predict(samples, batch_size, gpus, progress_bar):
        print("Predicting")
        return SimpleNamespace(scores=[len(sample["mt"]) / 100 + gpus for sample in samples])
    return SimpleNamespace(predict=predict)
"""


def test_the_worker_of_comet(tmp_path, monkeypatch):
    """With a package that has comet's functions, and prints where answers go, as the real one does."""
    site = tmp_path / "site"
    (site / "comet").mkdir(parents=True)
    (site / "comet" / "__init__.py").write_text(COMET)
    (site / "unbabel_comet-2.2.7.dist-info").mkdir()
    (site / "unbabel_comet-2.2.7.dist-info" / "METADATA").write_text("Name: unbabel-comet\nVersion: 2.2.7\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    program = parse_sources([f"cometkiwi(python={sys.executable},devices=1)"])[0].source
    assert isinstance(program, Program)
    with program.open("en", "ru") as estimator:
        assert estimator.signature == f"comet-2.2.7|model:{MODELS['cometkiwi'].options['model']}"
        assert estimator.estimate([("a", "бб"), ("b", "в")]) == [1.02, 1.01]


MODELS_OF_METRICX = """
from types import SimpleNamespace

class MT5ForRegression:
    @classmethod
    def from_pretrained(cls, name):
        return cls()

    def to(self, device):
        return self

    def eval(self):
        return self

    def __call__(self, input_ids, attention_mask):
        return SimpleNamespace(predictions=[float(len(input_ids[0]))])
"""
TORCH = """
import contextlib
from types import SimpleNamespace

cuda = SimpleNamespace(is_available=lambda: False)
no_grad = contextlib.nullcontext

def tensor(rows, device):
    return rows

def ones_like(rows):
    return rows
"""
TRANSFORMERS = """
__version__ = "4.30.2"

class AutoTokenizer:
    @staticmethod
    def from_pretrained(name):
        return lambda text, max_length, truncation: {"input_ids": [*text.split(), "</s>"]}
"""


def test_the_worker_of_metricx(tmp_path, monkeypatch):
    """With modules that have the functions which it calls: a score is minus the predicted cost."""
    (tmp_path / "metricx24").mkdir()
    (tmp_path / "metricx24" / "models.py").write_text(MODELS_OF_METRICX)
    for name, content in (("torch", TORCH), ("transformers", TRANSFORMERS)):
        (tmp_path / f"{name}.py").write_text(content)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program = parse_sources([f"metricx(python={sys.executable},repository={tmp_path})"])[0].source
    with program.open("en", "ru") as estimator:
        assert "transformers:4.30.2" in estimator.signature
        assert estimator.estimate([("a", "б в"), ("b", "г")]) == [-5, -4]
