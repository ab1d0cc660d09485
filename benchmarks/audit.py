"""What the audit finds, misses and takes: `python -m benchmarks.audit [NAME...]`.

The names are damage, recall, rated, speed, wmt and nfcorpus; all of them without one.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = Path(os.environ.get("RUSBEIR_DATA", "").split(os.pathsep)[0] or HERE.parent.parent / "shared" / "data")


def damage(n: int = 2000, each: int = 50) -> list[dict[str, Any]]:
    """Recall and false alarms of each check on planted damage."""
    from tests.support.planting import COUNTS_AS, DAMAGES, plant, xquad_pairs

    planted = plant(xquad_pairs(DATA, n), each)
    checking = _Checking.of([(row.source, row.translation) for row in planted])
    output: Counter[str] = Counter()
    alarms: Counter[str] = Counter()
    clean = sum(not row.damage for row in planted)
    for row, flags in zip(planted, checking.find([(row.source, row.translation) for row in planted]), strict=True):
        if row.damage:
            output[row.damage] += bool(flags & COUNTS_AS.get(row.damage, {row.damage}))
        else:
            alarms.update(flags)
            alarms["any"] += bool(flags)
    rows = [
        {"check": name, "recall": output[name] / each, "false_alarms": alarms[name] / clean, "planted": each}
        for name in DAMAGES
    ]
    rows.append({"check": "wrong-script", "false_alarms": alarms["wrong-script"] / clean})
    return [*rows, {"check": "any", "false_alarms": alarms["any"] / clean, "clean": clean}]


def recall() -> dict[str, Any]:
    """What the rules flag of the errors that people marked at WMT23, English to German, each system being one port."""
    folder = DATA.parent / "golden" / "wmt23-en-de"
    sources = (folder / "en-de.txt").read_text(encoding="utf-8").splitlines()
    ratings: dict[str, list[Any]] = {}
    for line in (folder / "en-de.mqm.merged.seg.rating").read_text(encoding="utf-8").splitlines():
        system, _, value = line.partition("\t")
        ratings.setdefault(system, []).append(None if value == "None" else json.loads(value)["errors"])
    met: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    for system in sorted(name for name in ratings if not name.startswith(("ref", "synthetic_ref"))):
        lines = (folder / "systems" / f"{system}.txt").read_text(encoding="utf-8").splitlines()
        rated = [row for row in zip(sources, lines, ratings[system], strict=True) if row[2] is not None]
        pairs = [(source, translation) for source, translation, _ in rated]
        for (_, _, errors), flags in zip(rated, _Checking.of(pairs, "de").find(pairs), strict=True):
            kinds = {error["category"].rpartition("/")[2] for error in errors}
            kinds |= {"major"} if any(error["severity"] == "major" for error in errors) else set()
            met.update({"rated", *kinds})
            flagged.update({"rated", *kinds} if flags else ())
    kinds = ["major", "omission", "addition", "source language fragment"]
    return {
        "rated": met["rated"],
        "flagged": flagged["rated"],
        "recall": {kind: flagged[kind] / met[kind] for kind in kinds},
        "precision": flagged["major"] / flagged["rated"],
    }


def rated(n: int = 20_000) -> dict[str, Any]:
    """Seconds of processor time in which so many ratings with spans are read and computed, by both commands."""
    from rusbeir.people import agree_on_errors, compare_metrics

    draw = random.Random(0)
    severities = ("minor", "minor", "major", "critical")

    def rate(number: int, **about: Any) -> str:
        starts = [draw.randrange(150) for _ in range(draw.randrange(4))]
        errors = [
            {"in": "translation", "start": start, "end": start + 12, "severity": draw.choice(severities)}
            for start in starts
        ]
        return json.dumps({**about, "document": f"d{number // 5}", "score": draw.randrange(101), "errors": errors})

    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.jsonl" for name in ("people", "metric")]
        for path in files:
            lines = (rate(k // 10, system=f"s{k % 10}", segment=k // 10) for k in range(n))
            path.write_text("\n".join(lines))
        raters = Path(folder) / "raters.jsonl"
        raters.write_text("\n".join(rate(k // 2, rater=f"r{k % 2}", item=f"i{k // 2}") for k in range(n)))
        seconds = {
            "audit meta": _time(lambda: compare_metrics(files[0], files[1:])),
            "audit agree": _time(lambda: agree_on_errors([raters])),
        }
    return {"rated": n, "seconds": seconds}


def _time(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


CLAIMED = {"major": 0.048, "omission": 0.152, "addition": 0.124, "source language fragment": 0.029}
"""Kind of error that people marked at WMT23 -> the share of paragraphs with it that the rules flag (docs/audit.md)."""


def rows() -> list[dict[str, Any]]:
    """what, measure, value, and expected or at_most."""
    measured = recall()
    what = "rules on WMT23, English to German"
    shares = [(f"recall, {kind}", measured["recall"][kind], share, 0.0005) for kind, share in CLAIMED.items()]
    shares.append(("precision", measured["precision"], 0.82, 0.005))
    seconds = rated()["seconds"]
    return [
        {"what": what, "measure": "flagged", "value": measured["flagged"], "expected": 139, "within": 0.5},
        *(
            {"what": what, "measure": name, "value": value, "expected": expected, "within": within}
            for name, value, expected, within in shares
        ),
        *(
            {"what": f"{verb} on 20,000 ratings", "measure": "seconds of processor time", "value": value, "at_most": 30}
            for verb, value in seconds.items()
        ),
    ]


def speed(n: int = 100_000) -> dict[str, Any]:
    """Segments per second through all checks, and the speed of chrF relative to sacrebleu on one core and on two."""
    from sacrebleu.metrics.chrf import CHRF

    from rusbeir.audit.port_checks import scores
    from rusbeir.processes import cpu_count, in_order
    from rusbeir.text import batched
    from tests.support.planting import xquad_pairs

    pairs = xquad_pairs(DATA, 2000)
    texts = [(pair.source, pair.translation) for pair in pairs]
    work = _Checking.of(texts)
    started = time.perf_counter()
    n_done = 0
    early = 0.0
    for count in in_order(work, batched(islice(cycle(texts), n), 500), cpu_count()):
        n_done += count
        # By now every process has read what it needs.
        if not early and n_done >= n // 5:
            early = _resident_mb()
    seconds = time.perf_counter() - started
    rise = _resident_mb() - early

    hypotheses = [pair.spanish for pair in pairs]
    references = [pair.source for pair in pairs]
    sacrebleu = CHRF()

    def theirs() -> list[float]:
        return [sacrebleu.sentence_score(h, [r]).score for h, r in zip(hypotheses, references, strict=True)]

    in_one_process, in_two_processes = [], []
    for _ in range(3):
        started = time.perf_counter()
        expected = theirs()
        base = time.perf_counter() - started
        started = time.perf_counter()
        scored = scores.chrf(scores.count_chrf(hypotheses, references)).tolist()
        in_one_process.append(base / (time.perf_counter() - started))
        assert max(abs(a - b) for a, b in zip(expected, scored, strict=True)) < 1e-9
        # As many texts for each of two processes, so that starting them weighs little.
        batches = [(hypotheses, references)] * 8
        list(in_order(_chrf, batches[:2], 2))
        started = time.perf_counter()
        list(in_order(_chrf, batches, 2))
        in_two_processes.append(8 * base / (time.perf_counter() - started))
    ratios = {"one_core": sorted(in_one_process)[1], "two_cores": sorted(in_two_processes)[1]}
    return {
        "segments": n_done,
        "segments_per_second": n_done / seconds,
        "rise_mb": rise,
        "chrf_times_sacrebleu": ratios,
    }


class _Checking:
    """All checks of the audit, for pairs of a source and a translation from English to that language."""

    def __init__(self, finders: Any, language: str) -> None:
        self.finders = finders
        self.language = language

    @classmethod
    def of(cls, pairs: list[tuple[str, str]], language: str = "ru") -> _Checking:
        from rusbeir.audit.port_checks.segment_checks import CheckedTexts, prepare_checks

        return cls(prepare_checks(CheckedTexts(languages=("en", language), pairs=lambda: pairs)), language)

    def find(self, pairs: list[tuple[str, str]]) -> list[set[str]]:
        from rusbeir.audit.port_checks.segment_checks import CheckedSegment, find_flags
        from rusbeir.translation.translator import Segment

        segments = [CheckedSegment(Segment(*pair, "en", self.language), None) for pair in pairs]
        return [{flag.name for flag in flags} for flags in find_flags(self.finders, segments)]

    def __call__(self, pairs: list[tuple[str, str]]) -> int:
        return len(self.find(pairs))


def _chrf(pair: tuple[list[str], list[str]]) -> int:
    from rusbeir.audit.port_checks import scores

    return len(scores.chrf(scores.count_chrf(*pair)))


def _resident_mb() -> float:
    """Of this process and those that it started."""
    pids = [os.getpid()]
    for task in Path(f"/proc/{pids[0]}/task").iterdir():
        pids += map(int, (task / "children").read_text().split())
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * resource.getpagesize() / 2**20


def wmt() -> list[dict[str, Any]]:
    """WMT22 en-ru through score_lines, and what sacrebleu's command line prints on the same."""
    from rusbeir.audit.port_checks.score_files import score_lines

    folder = DATA / "wmt22-en-ru"
    rows = []
    for path in sorted(folder.glob("hyp.*.ru")):
        report = score_lines(path, source=folder / "src.en", reference=folder / "ref.A.ru", language="ru")
        for name, options in _SACREBLEU.items():
            command = [Path(sys.executable).with_name("sacrebleu"), folder / "ref.A.ru", "-i", path, "-b", "-w", "12"]
            done = subprocess.run(
                [*command, "-l", "en-ru", "-m", *options.split()], capture_output=True, text=True, check=True
            )
            ours = f"{report['scores'][name]:.12f}"
            rows.append({"system": path.name, "score": name, "ours": ours, "sacrebleu": done.stdout.strip()})
        flags = {name: row["segments"] for name, row in report["flags"].items() if row["segments"]}
        rows.append({"system": path.name, "flagged": report["flagged"]["share"], "flags": flags})
    return rows


_SACREBLEU = {"BLEU": "bleu", "chrF": "chrf", "chrF++": "chrf --chrf-word-order 2", "TER": "ter"}


def nfcorpus() -> dict[str, Any]:
    """NFCorpus into Spanish and back with Apertium: seconds of the port and of the audit, and what it says."""
    from rusbeir.audit import audit_port
    from rusbeir.translation.porting.api import port

    with tempfile.TemporaryDirectory() as out:
        started = time.perf_counter()
        port("cocktail/nfcorpus/human", to="es", translator="apertium", out=out, keep_untranslated=True)
        ported = time.perf_counter()
        report = audit_port(out, back_translator="apertium")
        return {
            "port_seconds": ported - started,
            "audit_seconds": time.perf_counter() - ported,
            "levels": report["levels"],
            "flags": {name: row["share"] for name, row in report["flags"].items()},
            "round_trip": {name: report["round_trip"][name] for name in ("rows", "quartiles")},
        }


if __name__ == "__main__":
    names = sys.argv[1:] or ["damage", "recall", "rated", "speed", "wmt", "nfcorpus"]
    for name in names:
        output = globals()[name]()
        for row in output if isinstance(output, list) else [output]:
            print(json.dumps(row))
