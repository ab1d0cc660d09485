"""Small files under the paths where ir_datasets expects those of its datasets in other languages than English."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DOC_IDS = ("1", "2", "3")
QUERY_ID, DEV_QUERY_ID = "7", "8"
_DOCS = {"1": ("Котка", "Котка спи — 猫 قطة"), "2": ("Пес", "Пес лае"), "3": ("Риба", "Риба плава")}
_TSV = "".join(f"{doc_id}\t{text}\n" for doc_id, (_, text) in _DOCS.items())
_QUERIES = f"{QUERY_ID}\tкотка\n"
_LANGUAGES = {"fa": "fas", "ru": "rus", "zh": "zho"}
_CLIRMATRIX = ("ru", "kk")


def _write_qrels(iteration: str = "0", before: str = "", query_id: str = QUERY_ID) -> str:
    return f"{query_id} {iteration} {before}1 1\n{query_id} {iteration} {before}2 0\n"


def _write_lines(records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _write_articles(id_key: str = "id", before: str = "", **more: Any) -> str:
    return _write_lines(
        {id_key: before + key, "title": title, "text": text, **more} for key, (title, text) in _DOCS.items()
    )


def _write_topic(query_id: str = QUERY_ID) -> str:
    """Write a topic of HC4 or NeuCLIR, in English and translated by people and by machines."""
    topics = [
        {"lang": lang, "source": source} | {f"topic_{part}": f"{part} {source} {lang}" for part in _PARTS}
        for lang, source in [("eng", "original")]
        + [(lang, f"{how} translation") for lang in _LANGUAGES.values() for how in ("human", "machine")]
    ]
    report = {"text": "report", "url": "", "date": ""}
    narratives = {lang: {"very": "narrative"} for lang in _LANGUAGES.values()}
    return _write_lines(
        [{"topic_id": query_id, "languages_with_qrels": [*_LANGUAGES.values()], "topics": topics, "report": report,
          "narratives": narratives}]
    )  # fmt: skip


_PARTS = ("title", "description", "narrative")


def _write_sgml(text: str) -> str:
    return "".join(f"<DOC>\n<DOCNO>{doc_id}</DOCNO>\n<TEXT>\n{text} {doc_id}\n</TEXT>\n</DOC>\n" for doc_id in DOC_IDS)


def _put(path: Path, text: str, encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _pack(path: Path, members: Mapping[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def write_all(home: Path, sources: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Write the files of every family; sources is what ir_datasets has in etc/downloads.json."""
    for write in (_write_hc4, _write_mmarco, _write_miracl, _write_mr_tydi, _write_trec, _write_wikiclir, _write_wikir):
        write(home, sources)
    _write_clirmatrix(home)


def _write_hc4(home: Path, sources: Any) -> None:
    """Write HC4, NeuCLIR, and the abstracts of CSL with NeuCLIR's technical topics."""
    article = {"url": "", "time": "", "cc_file": ""}
    for family in ("hc4", "neuclir", "csl"):
        for key, source in sources[family].items():
            path = home / family / source["cache_path"]
            # Documents of three languages are searched together, and two splits of HC4's topics.
            language = next((lang for tag, lang in _LANGUAGES.items() if tag in key.split("/")), "")
            query_id = DEV_QUERY_ID if "dev" in key.split("/") else QUERY_ID
            if "/ids" in key:
                _put(path, _write_lines({"id": language + doc_id} for doc_id in DOC_IDS))
            elif key.endswith("docs") and family != "csl":
                _put(path, _write_articles(before=language, **article))
            elif key.endswith(("topics", "queries")):
                _put(path, _write_topic(query_id))
            elif key == "trec-2022/qrels":
                _put(path, "".join(_write_qrels(lang, lang) for lang in _LANGUAGES.values()))
            elif key == "trec-2023/qrels":
                members = {f"qrels.final.gains.{lang}": _write_qrels(before=lang) for lang in _LANGUAGES.values()}
                members |= {"qrels.final.gains": "".join(members.values()), "tech_final_qrels.txt": _write_qrels()}
                _pack(path, {name: text.encode() for name, text in members.items()})
            elif key.endswith("qrels"):
                _put(path, _write_qrels(before=language, query_id=query_id))
    abstracts = [
        {"doc_id": key, "title": title, "abstract": text, "keywords": [], "category": "", "category_eng": "",
         "discipline": "", "discipline_eng": ""}
        for key, (title, text) in _DOCS.items()
    ]  # fmt: skip
    _put(home / "csl" / sources["csl"]["docs"]["cache_path"], _write_lines(abstracts))


def _write_mmarco(home: Path, sources: Any) -> None:
    """Write mMARCO, NeuMARCO, and of MS MARCO the queries and judgements that both share."""
    for key, source in sources["mmarco"].items():
        path = home / "mmarco" / source["cache_path"]
        if "scoreddocs" not in key and "triples" not in key:
            _put(path, _TSV if key.endswith("docs") else _write_qrels() if "qrels" in key else _QUERIES)
    for language in _LANGUAGES:
        _put(home / "neumarco" / f"{language}.tsv", _TSV)
    for split in ("train", "dev", "dev/small"):
        _put(home / "msmarco-passage" / split / "queries.tsv", _QUERIES)
        _put(home / "msmarco-passage" / split / "qrels", _write_qrels())


def _write_miracl(home: Path, sources: Any) -> None:
    for key, source in sources["miracl"].items():
        part = 0 if "/corpus/" not in key else int(key.rpartition("/")[2])
        text = _write_qrels() if key.endswith("qrels") else _QUERIES
        if "/corpus/" in key:
            text = _write_articles("docid") if part == 0 else ""
        _put(home / "miracl" / source["cache_path"], text)


def _write_mr_tydi(home: Path, sources: Any) -> None:
    docs = _write_lines({"id": doc_id, "contents": text} for doc_id, (_, text) in _DOCS.items())
    for language, source in sources["mr-tydi"].items():
        name = source["url"].rpartition("/")[2].removesuffix(".tar.gz")
        folder = home / "mr-tydi" / f"{language}.data" / name
        _put(folder / "collection" / "docs.jsonl.gz", docs)
        for split in ("", ".train", ".dev", ".test"):
            _put(folder / f"topic{split}.tsv", _QUERIES)
            _put(folder / f"qrels{split}.txt", _write_qrels())


def _write_trec(home: Path, sources: Any) -> None:
    """Write TREC's Arabic, Mandarin and Spanish collections, whose documents the LDC sells."""
    arabic = "<top>\n<num> Number: AR7\n<title> قطة\n<desc> Description:\nقطة\n<narr> Narrative:\nقطة\n</top>\n"
    chinese = "<top>\n<num> Number: CH7\n" + "".join(
        f"<{letter}-{tag}> {name}:\n{text}\n"
        for tag, name in (("title", "Topic"), ("desc", "Description"), ("narr", "Narrative"))
        for letter, text in (("E", "cat"), ("C", "猫"))
    ) + "</top>\n"  # fmt: skip
    both = "gato\n\n** cat\n"
    spanish = {
        "trec3": f"<top>\n<num> Number: SP7\n<title> Topic: {both}<desc> Description:\n{both}<narr> Narrative:\n{both}"
        "</top>\n",
        "trec4": f"<top>\n<num> Number: SP7\n<desc> Description:\n{both}\n{both}</top>\n",
    }
    collections: dict[str, tuple[str, bytes]] = {
        "trec-arabic": (
            "arabic_newswire_a/transcripts/a/b.sgm.gz",
            gzip.compress(_write_sgml("قطة").encode(), mtime=0),
        ),
        "trec-mandarin": ("c/xinhua/x1", _write_sgml("猫").encode("gb18030")),
        "trec-spanish": ("c/infosel_data/ism_000.gz", gzip.compress(_write_sgml("gato").encode(), mtime=0)),
    }
    for family, (name, data) in collections.items():
        for key, source in sources[family].items():
            path = home / family / source["cache_path"]
            if key == "docs":
                _pack(path, {name: data})
            elif key.endswith("qrels"):
                _put(path, _write_qrels())
            elif family == "trec-arabic":
                _put(path, arabic, "iso-8859-6")
            else:
                _put(path, *((chinese, "gbk") if family == "trec-mandarin" else (spanish[key[:5]], "iso-8859-1")))


def _write_wikiclir(home: Path, sources: Any) -> None:
    from ir_datasets.datasets import wikiclir

    folder = home / "wikiclir" / "source" / "wiki-clir"
    _put(folder / "english" / "wiki_en.queries", f"{QUERY_ID}\tcat\tA cat is an animal.\n")
    for dataset in wikiclir.subsets.values():
        titled = "".join(f"{doc_id}\t{title}\t{text}\n" for doc_id, (title, text) in _DOCS.items())
        _put(Path(dataset.docs_path(force=False)), titled)
        _put(Path(dataset.qrels_handler()._qrels_dlc.path(force=False)), f"{QUERY_ID}\t1\t1\n{QUERY_ID}\t2\t0\n")


def _write_wikir(home: Path, sources: Any) -> None:
    for name, folder in (("fr14k", "FRwikIR14k"), ("es13k", "ESwikIR13k"), ("it16k", "ITwikIR16k")):
        root = home / "wikir" / name / folder
        rows = "".join(f'{doc_id},"{text}"\n' for doc_id, (_, text) in _DOCS.items())
        _put(root / "documents.csv", f"id_right,text_right\n{rows}")
        for split in ("training", "validation", "test"):
            _put(root / split / "queries.csv", f"id_left,text_left\n{QUERY_ID},cat\n")
            _put(root / split / "qrels", _write_qrels())


def _write_clirmatrix(home: Path) -> None:
    """Write CLIRMatrix for Russian documents and queries in Kazakh, with the list of files that names their paths."""
    documents, query = _CLIRMATRIX
    key, queries = f"queries/{query}_{documents}/test1", f"bi139/{query}_{documents}.jsonl.gz"
    listing = {
        "clirmatrix_docs": {f"docs/{documents}": {"url": "", "cache_path": f"docs/{documents}.gz"}},
        "clirmatrix_bi139_base": {key: {"url": "", "cache_path": queries}},
        "clirmatrix_bi139_full": {key: {"url": "", "cache_path": queries}},
    }
    _put(home / "clirmatrix" / "clirmatrix_downloads.json.gz", json.dumps(listing))
    _put(home / "clirmatrix" / "docs" / f"{documents}.gz", _TSV)
    _put(
        home / "clirmatrix" / queries,
        _write_lines([{"src_id": QUERY_ID, "src_query": "мысық", "tgt_results": [["1", 6], ["2", 0]]}]),
    )


FAMILIES = ("clirmatrix", "csl", "hc4", "miracl", "mmarco", "mr-tydi", "neuclir", "neumarco", "trec-arabic",
            "trec-mandarin", "trec-spanish", "wikiclir", "wikir")  # fmt: skip
"""Where ir_datasets has texts in other languages, but for web pages (clueweb09) and features (istella22)."""


def list_ids(library: Any) -> list[str]:
    """List the ids that have documents; of CLIRMatrix's patterns, one of each kind; of the English WikIR, none."""
    ids = [name for name in library.registry if name.startswith(FAMILIES) and library.registry[name].has_docs()]
    documents, query = _CLIRMATRIX
    patterns = [documents, *(f"{documents}/bi139-{size}/{query}/test1" for size in ("base", "full"))]
    return [name for name in ids if not name.startswith("wikir/en")] + [f"clirmatrix/{name}" for name in patterns]


def main() -> None:
    """Write the files below IR_DATASETS_HOME, load every id and every name given, and print what came of it as JSON.

    A name may be followed by languages, as in "irds:neuclir/1/multi ru,zh"; it is then validated, too.
    """
    import ir_datasets

    import rusbeir
    from rusbeir.datasets import validate
    from rusbeir.errors import RusbeirError
    from rusbeir.types import query_language

    home = Path(os.environ["IR_DATASETS_HOME"])
    write_all(home, ir_datasets.util.DownloadConfig.contents())
    loaded: dict[str, Any] = {}
    for key in [f"irds:{name}" for name in list_ids(ir_datasets)] + sys.argv[1:]:
        name, _, languages = key.partition(" ")
        try:
            language = languages or ("ru" if "/multi" in name else None)
            data = rusbeir.load(name, judged=False, language=language, accept_difference=True)
            loaded[key] = {
                "docs": {doc.doc_id: [doc.title, doc.text] for doc in data.corpus},
                "queries": dict(data.queries),
                "n_qrels": sum(map(len, data.qrels.values())),
                "language": data.card.language,
                "languages": data.card.languages,
                "asked_in": data.card.asked_in,
                "query_languages": [query_language(data.queries, query_id, "") for query_id in data.queries],
                "split": data.card.split,
                "name": data.card.name,
                "licence": data.card.licence,
                "known_language": ir_datasets.load(name.removeprefix("irds:").partition("?")[0]).docs_lang(),
                "findings": list(map(str, validate(name, language=language))) if languages else [],
            }
        except RusbeirError as error:
            loaded[key] = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(loaded))


if __name__ == "__main__":
    main()
