"""Lucene's analyzers and the profiles lucene-LANG on the lines of NTREX-128: prints the share of equal lines.

python -m benchmarks.lucene [--language CODE]... [--version 10.2.2] [--differences 5] [--json]

Maven fetches Lucene's jars, and a JDK of 21 or newer runs them. RUSBEIR_DATA names the folder that has ntrex.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rusbeir.analysis import Analyzer
from tests.support import elastic_node

SOURCE = Path(__file__).parent / "lucene_terms"
ANALYZERS = {
    "ar": ("ar.Arabic", "arb"),
    "bg": ("bg.Bulgarian", "bul"),
    "bn": ("bn.Bengali", "ben"),
    "ca": ("ca.Catalan", "cat"),
    "cs": ("cz.Czech", "ces"),
    "da": ("da.Danish", "dan"),
    "de": ("de.German", "deu"),
    "el": ("el.Greek", "ell"),
    "en": ("en.English", "eng-GB"),
    "es": ("es.Spanish", "spa"),
    "et": ("et.Estonian", "est"),
    "eu": ("eu.Basque", "eus"),
    "fa": ("fa.Persian", "fas"),
    "fi": ("fi.Finnish", "fin"),
    "fr": ("fr.French", "fra"),
    "ga": ("ga.Irish", "gle"),
    "gl": ("gl.Galician", "glg"),
    "hi": ("hi.Hindi", "hin"),
    "hu": ("hu.Hungarian", "hun"),
    "hy": ("hy.Armenian", "hye"),
    "id": ("id.Indonesian", "ind"),
    "it": ("it.Italian", "ita"),
    "ja": ("cjk.CJK", "jpn"),
    "ko": ("cjk.CJK", "kor"),
    "lt": ("lt.Lithuanian", "lit"),
    "lv": ("lv.Latvian", "lav"),
    "ne": ("ne.Nepali", "nep"),
    "nl": ("nl.Dutch", "nld"),
    "no": ("no.Norwegian", "nob"),
    "pt": ("pt.Portuguese", "por"),
    "ro": ("ro.Romanian", "ron"),
    "ru": ("ru.Russian", "rus"),
    "sr": ("sr.Serbian", "srp-Cyrl"),
    "sv": ("sv.Swedish", "swe"),
    "ta": ("ta.Tamil", "tam"),
    "te": ("te.Telugu", "tel"),
    "tr": ("tr.Turkish", "tur"),
    "zh": ("cjk.CJK", "zho-CN"),
    "zh-Hant": ("cjk.CJK", "zho-TW"),
}
"""Language -> Lucene's analyzer, and NTREX's name of the language."""
EMPTY = "∅"
"""Stands for a term without characters."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", action="append", choices=list(ANALYZERS))
    parser.add_argument("--version", default="10.2.2")
    parser.add_argument("--differences", type=int, default=5, help="how many differences of a language are printed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    texts = {language: read_ntrex(language) for language in options.language or ANALYZERS}
    shares: dict[str, float] = {}
    for language, lines in run_lucene(texts, options.version).items():
        ours = list(Analyzer(language, profile_of(language)).analyze_lines(texts[language]))
        pairs = [(lucene, line) for lucene, line in zip(lines, ours, strict=True) if lucene != line]
        shares[language] = 100 * (1 - len(pairs) / len(lines))
        if not options.json:
            print(f"{language:8} {shares[language]:6.2f} % of {len(lines):,} lines", flush=True)
            for (lucene, line), count in count_differences(pairs).most_common(options.differences):
                print(f"         {count:4} × {lucene or 'nothing'}, here {line or 'nothing'}")
    if options.json:
        print(json.dumps({"shares": shares, "least": min(shares.values())}))


def profile_of(language: str) -> str:
    """The profile that is to give the terms of Lucene's analyzer."""
    return "lucene-cjk" if language in ("ja", "ko") else f"lucene-{language}"


def read_ntrex(language: str) -> list[str]:
    """The lines of NTREX-128 in the language."""
    for folder in filter(None, os.environ.get("RUSBEIR_DATA", "").split(os.pathsep)):
        path = Path(folder) / "ntrex" / "NTREX-128" / f"newstest2019-ref.{ANALYZERS[language][1]}.txt"
        if path.is_file():
            with path.open(encoding="utf-8") as file:
                return [line.rstrip("\n") for line in file]
    raise SystemExit(f"NTREX-128 in {language!r} is not below RUSBEIR_DATA.")


def run_lucene(texts: Mapping[str, Sequence[str]], version: str) -> dict[str, list[str]]:
    """Make the terms of each language's texts by Lucene's analyzer, as lines."""
    java = elastic_node.java(21)
    if java is None:
        raise SystemExit("There is no JDK of 21 or newer here.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fetch = ["mvn", "-q", "-B", "package", f"-Dlucene.version={version}", f"-Dout={folder}"]
        subprocess.run(fetch, cwd=SOURCE, check=True)
        arguments: list[str | Path] = []
        for language, lines in texts.items():
            (folder / f"{language}.in").write_text("\n".join(lines) + "\n", encoding="utf-8")
            arguments += [f"{ANALYZERS[language][0]}Analyzer", folder / f"{language}.in", folder / f"{language}.out"]
        command = [java / "java", "-cp", f"{folder}/lib/*", SOURCE / "LuceneTerms.java", *arguments]
        subprocess.run(command, check=True)
        return {language: _read_terms(folder / f"{language}.out") for language in texts}


def _read_terms(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [" ".join(term or EMPTY for term in line.split("\t")[1:]) for line in lines]


def count_differences(pairs: Sequence[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Count the terms that only Lucene has, each with what is here in its place."""
    differences: Counter[tuple[str, str]] = Counter()
    for lucene, line in pairs:
        theirs, ours = lucene.split(), line.split()
        if len(theirs) == len(ours):
            differences.update(pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1])
        else:
            only_theirs, only_ours = Counter(theirs) - Counter(ours), Counter(ours) - Counter(theirs)
            differences[" ".join(only_theirs), " ".join(only_ours)] += 1
    return differences


if __name__ == "__main__":
    main()
