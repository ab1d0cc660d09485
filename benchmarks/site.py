"""The size of large reports, and how fast a browser shows them: 20 systems on 30 and on 150 datasets in 5 languages.

Their rows are made up, of 300 queries each. The explorer is that of xquad/ru with its 1,190 queries: three systems
that were run, shown as 20; its queries are then repeated until there are 5,000.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import rusbeir
from rusbeir.site.pages import write_site
from tests.support import browser

SYSTEMS = 20
LANGUAGES = ("de", "en", "es", "kk", "ru")
QUERIES = 300
CLICKS = range(0, 1_190, 40)

_CLICK = """number => {
    const started = performance.now();
    openQuery(shown[number]);
    document.body.getBoundingClientRect();
    return performance.now() - started;
}"""
_REPEAT = """() => {
    const n = data.queries.length, repeat = (list) => Array.from({ length: 5000 }, (_, i) => list[i % n]);
    [data.hits, data.query_terms] = [repeat(data.hits), repeat(data.query_terms)];
    data.queries = repeat(data.queries).map((query, i) => ({ ...query, id: `${query.id}-${i}` }));
    list(true);
}"""

_PAINT = """() => new Promise(resolve => {
    const observer = new PerformanceObserver(list => resolve(list.getEntries().at(-1).startTime));
    observer.observe({type: "paint", buffered: true});
})"""
"""The milliseconds until the page was drawn, which it may not yet be when it is loaded."""


def rows() -> list[dict[str, Any]]:
    """what, measure, value, and at_most where it is claimed; a first view ends when the browser has drawn it."""
    figures = []
    with tempfile.TemporaryDirectory() as name, browser.launched() as chromium:
        page = chromium.new_page()
        for n_datasets, most, soon in ((30, {"at_most": 5}, 0.5), (150, {}, 2)):
            rows, site = Path(name, f"rows of {n_datasets}"), Path(name, f"site of {n_datasets}")
            _make_rows(rows, n_datasets)
            write_site([rows], site)
            what = f"report, {SYSTEMS} systems x {n_datasets} datasets in {len(LANGUAGES)} languages"
            first = _size(site / "index.html") / 1e6
            total = first + sum(_size(path) / 1e6 for path in (site / "datasets").iterdir())
            page.goto((site / "index.html").as_uri())
            seconds = page.evaluate(_PAINT) / 1e3
            figures += [
                {"what": what, "measure": "MB of the first page", "value": first, "at_most": 5},
                {"what": what, "measure": "MB of all pages without per-query data", "value": total, **most},
                {"what": what, "measure": "seconds to the first view", "value": seconds, "at_most": soon},
            ]
        _repeat_systems(Path(name, "results"))
        write_site([Path(name, "results")], Path(name, "explorer"))
        (path,) = Path(name, "explorer", "datasets").iterdir()
        page.goto(path.as_uri())
        for n_queries in ("1,190", "5,000"):
            if n_queries == "5,000":
                page.evaluate(_REPEAT)
            slowest = max(page.evaluate(_CLICK, number) for number in CLICKS)
            what = f"explorer, {SYSTEMS} systems x {n_queries} queries"
            figures.append(
                {"what": what, "measure": "ms of the slowest of 30 clicks", "value": slowest, "at_most": 100}
            )
    return figures


def _make_rows(folder: Path, n_datasets: int) -> None:
    """A row for each system and dataset, with scores of each query."""
    (folder / "per_query").mkdir(parents=True)
    random = np.random.default_rng(6)
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for dataset in range(n_datasets):
            language = LANGUAGES[dataset % len(LANGUAGES)]
            base = random.random(QUERIES) / 2
            for system in range(SYSTEMS):
                scores = np.clip(base + random.normal(system / 100, 0.1, QUERIES), 0, 1)
                file.write(_write_row(folder, f"made/{language}/{dataset}", language, system, scores))


def _write_row(folder: Path, name: str, language: str, system: int, scores: Any) -> str:
    path = folder / "per_query" / f"{name.replace('/', '-')}-{system}.json"
    path.write_text(json.dumps({f"q{query}": {"nDCG@10": score} for query, score in enumerate(scores)}))
    row = {
        "dataset": name,
        "language": language,
        "split": "test",
        "system": f"bm25(k1={system / 10})",
        "engine": "bm25s",
        "signature": f"bm25|k1:{system / 10}|k:100",
        "fingerprint": name,
        "measures": {"nDCG@10": float(scores.mean())},
        "n_zero_hit": 0,
        "n_tied": 0,
        "seconds": {"analyse": 1.0, "index": 1.0, "search": 1.0, "evaluate": 0.1},
        "bytes": {"index": 1_000_000, "peak_rss": 100_000_000},
        "costs": 2,
        "run": "",
        "per_query": str(path),
        "version": rusbeir.__version__,
    }
    return json.dumps(row) + "\n"


def _repeat_systems(folder: Path) -> None:
    """Run three systems on xquad/ru and write their rows as those of 20."""
    for system in ("bm25", "bm25(profile=snowball)", "bm25(profile=raw)"):
        rusbeir.bench("xquad/ru", system, out=folder)
    path = folder / "rows.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    many = [
        {**rows[n % len(rows)], "system": f"bm25(k1={n / 10})", "signature": f"bm25|k1:{n / 10}|k:100"}
        for n in range(SYSTEMS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in many), encoding="utf-8")


def _size(page: Path) -> int:
    """Bytes of a page without the per-query data in it."""
    return len(
        re.sub(rb'(<script type="application/json" id="data">).*?</script>', rb"\1", page.read_bytes(), flags=re.S)
    )
