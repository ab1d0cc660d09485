"""What the suffix rules of docs/add-a-language.md bring: NTREX in Kazakh, and the language files of that page.

python -m benchmarks.suffixes ntrex-kk my-languages

Writes a BEIR folder and a folder of language files, which a row of figures.toml compares. NTREX has 123 documents of
news, translated into 128 languages. As an inverse cloze, the first, third, fifth … sentence of a document are the
document, and each other sentence is a query whose relevant document it is.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from benchmarks.run import find_data
from rusbeir.datasets import write_beir
from rusbeir.types import Dataset

PAGE = Path(__file__).parent.parent / "docs" / "add-a-language.md"
_FILE = re.compile(r"^cat > my-languages/(kk\.\w+) <<'END'\n(.*?)^END$", re.MULTILINE | re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("languages", type=Path)
    options = parser.parse_args()
    find_data()
    write_beir(make_inverse_cloze("kk", "kaz"), options.dataset)
    options.languages.mkdir(parents=True, exist_ok=True)
    for name, content in _FILE.findall(PAGE.read_text(encoding="utf-8")):
        (options.languages / name).write_text(content, encoding="utf-8")


def make_inverse_cloze(language: str, code: str) -> Dataset:
    """The documents and queries of NTREX in a language, which NTREX calls by that code."""
    folders = [Path(folder) / "ntrex" for folder in os.environ["RUSBEIR_DATA"].split(os.pathsep)]
    folder = next(folder for folder in folders if folder.is_dir())
    doc_ids = (folder / "DOCUMENT_IDS.tsv").read_text(encoding="utf-8").splitlines()
    lines = (folder / "NTREX-128" / f"newstest2019-ref.{code}.txt").read_text(encoding="utf-8").splitlines()
    sentences: dict[str, list[str]] = {}
    for doc_id, line in zip(doc_ids, lines, strict=True):
        sentences.setdefault(doc_id, []).append(line)
    docs = [{"_id": doc_id, "text": " ".join(texts[::2])} for doc_id, texts in sentences.items()]
    asked = {doc_id: dict(enumerate(texts[1::2])) for doc_id, texts in sentences.items()}
    queries = {f"{doc_id}-{number}": text for doc_id, texts in asked.items() for number, text in texts.items()}
    qrels = {f"{doc_id}-{number}": {doc_id: 1} for doc_id, texts in asked.items() for number in texts}
    return Dataset.of(docs, queries, qrels, language=language, name=f"ntrex-{language}")


if __name__ == "__main__":
    main()
