"""What people and judges said of a sample of a port, and where its texts are on sheets, on the page of its audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from rusbeir.audit.port_checks.pages import PAGE, template_environment
from rusbeir.datasets import REPORT, read_json
from rusbeir.storage import atomic_file
from rusbeir.text import write_command

OPINIONS: Final = "opinions.json"
_KEYS = ("sheets/key.json", "esa/key.json")
SAID: Final = (OPINIONS, *_KEYS)
"""The files in qa of a port that has sheets, or of which people or a judge have said something."""
_SHAPE = {
    "fingerprint": str,
    "opinions": {
        str: {"means": {str: {"mean": float, "interval": ([float], None)}}, "n": int, "scale": [(float, None)]}
    },
}  # fmt: skip
_KEY = {"items": {str: {"kind?": str, "id?": str}}, "raters?": {str: [str]}}


def read_opinions(folder: Path, fingerprint: str) -> dict[str, Any]:
    """Read what the page of an audit shows of people and judges: `opinions` by who gave them, `sheets` by kind and id.

    What is about another version of the port is left out. Raises BadInput for damaged files.
    """
    again = write_command("audit", "agree", "SHEETS", "--port", folder.parent)
    remedy = f"Remove the file, and run `{again}` again."
    stored = read_json(folder / OPINIONS, _SHAPE, remedy) if (folder / OPINIONS).exists() else {}
    current = stored.get("fingerprint") == fingerprint
    return {"opinions": stored["opinions"] if current else {}, "sheets": dict(_find_sheets(folder))}


def save_opinions(folder: Path, opinions: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep what people or a judge said, over what the same ones said before, and write the page of the audit again.

    opinions: who -> `means` with intervals by dimension, the ends of their `scale`, and `n` texts. Without an audit
    nothing is kept.
    """
    if not (folder / REPORT).exists():
        return
    fingerprint = orjson.loads((folder / REPORT).read_bytes())["fingerprint"]
    earlier = read_opinions(folder, fingerprint)["opinions"]
    with atomic_file(folder / OPINIONS) as file:
        document = {"fingerprint": fingerprint, "opinions": {**earlier, **opinions}}
        file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    refresh_page(folder)


def refresh_page(folder: Path) -> None:
    """Write the page of the last audit again, with what people and judges said since, and links to their sheets."""
    if not (folder / REPORT).exists():
        return
    report = orjson.loads((folder / REPORT).read_bytes())
    values = read_opinions(folder, report["fingerprint"])
    page = template_environment().get_template("report.html.j2").render(report=report, **values)
    with atomic_file(folder / PAGE) as file:
        file.write(page.encode())


def _find_sheets(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the kind and id of each text on a sheet, as "query q1", and where it is there."""
    for name in _KEYS:
        if not (path := folder / name).exists():
            continue
        key = read_json(path, _KEY, "Restore the file.")
        raters = key.get("raters", {"rater-1": list(key["items"])})
        for rater, items in raters.items():
            if not path.with_name(f"{rater}.html").exists():
                continue
            for item in items:
                if "kind" in (about := key["items"].get(item, {})) and "id" in about:
                    yield f"{about['kind']} {about['id']}", f"{path.parent.name}/{rater}.html#{item}"
