"""The audit of a port: every segment checked, translated back and compared; the report as JSON and as an HTML page.

What the sheets' pages share with it is here, too: templates, texts that are safe to show, differences, histograms.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

import orjson

from rusbeir import __version__
from rusbeir.audit.port_checks import scores
from rusbeir.audit.port_checks.aligned import AlignedPort, open_port
from rusbeir.audit.port_checks.gates import Gate, apply_gates, list_figures, refuse_unknown
from rusbeir.audit.port_checks.measurement import BackTranslations, Measurer, RecordFile, keep_records, measure
from rusbeir.audit.port_checks.reference import compare_port, open_reference
from rusbeir.audit.port_checks.retrieval_round_trip import RoundTrip, open_round_trip
from rusbeir.audit.port_checks.segment_checks import CHECKS, AuditCheck, CheckedTexts, prepare_checks
from rusbeir.audit.port_checks.tally import Tally
from rusbeir.datasets import QA, REPORT, is_published, read_json
from rusbeir.errors import BadInput, require
from rusbeir.jobs import Tell
from rusbeir.storage import atomic_file
from rusbeir.text import write_command
from rusbeir.translation import Translator, TranslatorOptions, translate_texts
from rusbeir.types import Progress, silent

if TYPE_CHECKING:
    from rusbeir.cluster import Workers

PAGE: Final = "report.html"
TEXTS: Final = "texts.jsonl"
SEGMENTS: Final = "segments.jsonl"


def audit_port(
    folder: str | Path,
    *,
    source: str | Path | None = None,
    back_translator: str | Translator | None = None,
    reference: str | Path | None = None,
    language: str | None = None,
    split: str | None = None,
    round_trip: bool = True,
    checks: Mapping[str, AuditCheck] = CHECKS,
    processes: int | None = None,
    budget_chars: int | None = None,
    budget_cost: float | None = None,
    on: str | None = None,
    progress: Progress = silent,
    gates: Sequence[Gate] = (),
    tell: Tell = lambda line: None,
    **options: Unpack[TranslatorOptions],
) -> dict[str, Any]:
    """Audit the port in folder and return the report (docs/audit.md), also written to qa/report.json and .html.

    Without a back_translator there is no chrF and no round trip; the options are the back-translator's. Segments
    translated back before are not sent again. on is where checks, and a local back-translator, run: "ray" or
    "ray://HOST:PORT" (docs/scale.md). A reference is a human translation of the same dataset with the same
    ids. Raises BadInput for a folder that is not a port or that `rusbeir publish` wrote, for a reference of another
    dataset, and what rusbeir.port raises where the back-translator fails.

    >>> audit_port("scifact-kk", back_translator="google")["levels"]["documents"]["chrF"]  # doctest: +SKIP
    61.7
    """
    if gates:
        known = list_figures(checks, translated_back=back_translator is not None, compared=reference is not None)
        refuse_unknown(gates, known)
    port = open_port(folder, source=source, language=language, split=split, progress=progress)
    if is_published(port.folder):
        raise BadInput(
            f"{folder} was written by `rusbeir publish`: its audit would put the texts of the source into what is "
            "uploaded. Check the port itself, or "
            f"`{write_command('audit', 'published', port.source.card.name, folder, '--out', 'DIR')}`, "
            "which writes into another folder."
        )
    other = open_reference(port, reference, progress) if reference is not None else None
    with ExitStack() as stack:
        workers = None
        if on is not None:
            from rusbeir.cluster import open_workers

            workers = stack.enter_context(open_workers(on))
        records = stack.enter_context(keep_records(port.records(), port.folder / QA, progress))
        back = None
        if back_translator is not None:
            translation = translate_texts(
                (translation for _, translation in records.pairs()),
                source=port.languages[1],
                target=port.languages[0],
                # The answers in its journal are not asked for again.
                out=port.folder / QA / "back",
                translator=back_translator,
                budget_chars=budget_chars,
                budget_cost=budget_cost,
                on=workers,
                progress=progress,
                tell=tell,
                **options,
            )
            plan, journal = stack.enter_context(translation)
            back = BackTranslations(journal=journal, plan=plan)
        trip = stack.enter_context(open_round_trip(port)) if back and round_trip else None
        report = check_records(
            records, port, checks, port.folder / QA, back=back, trip=trip, processes=processes, workers=workers,
            progress=progress,
        )  # fmt: skip
    if back is not None and back.n_missing:
        n = report["n_segments"]
        tell(f"{back.n_missing:,} of {n:,} segments have no back-translation; they count as they are.")
    report["reference"] = compare_port(port, other, processes=processes, progress=progress) if other else None
    report["round_trip"] = trip.measure(progress) if trip else None
    write_report(report, gates, port.folder / QA)
    return report


def check_records(
    records: RecordFile,
    port: AlignedPort,
    checks: Mapping[str, AuditCheck],
    folder: Path,
    *,
    back: BackTranslations | None = None,
    trip: RoundTrip | None = None,
    processes: int | None,
    workers: Workers | None = None,
    progress: Progress,
) -> dict[str, Any]:
    """Check all records, and write what was found out about each to texts.jsonl and segments.jsonl in the folder.

    Returns the keys of a report that say what was audited and what all of it amounts to.
    """
    texts = CheckedTexts(languages=port.languages, pairs=records.pairs, translated_back=back is not None)
    finders = prepare_checks(texts, checks)
    tally = Tally()
    with atomic_file(folder / TEXTS) as text_file, atomic_file(folder / SEGMENTS) as segment_file:
        for one in measure(records, back, Measurer(texts.languages, finders), processes, progress, workers):
            text_file.write(one.row)
            segment_file.writelines(one.segment_rows)
            tally.add(one)
            if trip is not None:
                trip.add(one)
    card = port.dataset.card
    return {
        "version": __version__,
        "port": card.name,
        "folder": str(port.folder),
        "fingerprint": port.dataset.fingerprint,
        "source": port.source.card.name,
        "splits": list(port.splits),
        "languages": port.languages,
        "translators": [row["signature"] for row in card.provenance.get("translators", [])],
        "back_translators": [entry.signature for entry in back.plan.entries] if back else [],
        "signatures": {name: scores.signature(name) for name in ("chrF", "chrF++")} if back else {},
        **tally.summary(finders),
    }


def write_report(report: dict[str, Any], gates: Sequence[Gate], folder: Path) -> None:
    """Apply the gates to a report, and write it to report.json and report.html in the folder."""
    report["gates"] = apply_gates(gates, report) if gates else None
    with atomic_file(folder / REPORT) as file:
        file.write(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
    with atomic_file(folder / PAGE) as file:
        file.write(template_environment().get_template("report.html.j2").render(report=report).encode())


def read_report(port: AlignedPort) -> dict[str, Any]:
    """The report of the last check of this port. Raises BadInput where there is none, or the port has changed since."""
    path = port.folder / QA / REPORT
    if not path.exists():
        raise BadInput(
            f"{port.folder} has not been checked yet. Run `{write_command('audit', 'check', port.folder)}` first."
        )
    again = f"Run `{write_command('audit', 'check', port.folder)}` again."
    report: dict[str, Any] = read_json(path, {"fingerprint": str, "flags": dict}, again)
    if report["fingerprint"] != port.dataset.fingerprint:
        raise BadInput(f"{port.folder} has changed since it was checked. {again}")
    return report


MAX_SHOWN_CHARS = 1500
"""The longest text on a page, in characters; longer ones are truncated with a note."""
MAX_COMPARED = 70_000
"""The pairs of equal words, spaces among them, up to which differences are looked for in full: a few seconds."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
# Characters that a page must not contain, and those that change the direction of the text after them.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]"
)


def clean_text(text: str, chars: int = MAX_SHOWN_CHARS) -> str:
    """The text with control characters replaced by �, truncated to that many characters with a note of its length.

    >>> clean_text("a\\x00b")
    'a�b'
    """
    short = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text[:chars])
    return short if len(text) <= chars else f"{short} … ({len(text):,} characters)"


def find_differences(before: str, after: str) -> list[tuple[str, str, str]]:
    """(how, words of before, words of after): "equal", "replace", "delete" or "insert".

    >>> find_differences("a red cat", "a cat")
    [('equal', 'a ', 'a '), ('delete', 'red ', ''), ('equal', 'cat', 'cat')]
    """
    old, new = _WORDS.findall(clean_text(before)), _WORDS.findall(clean_text(after))
    # Where a few words make up both texts, comparing all their places takes minutes; autojunk leaves those words out.
    counts = Counter(new)
    many = sum(counts[word] for word in old) > MAX_COMPARED
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=many)
    return [(how, "".join(old[a:b]), "".join(new[c:d])) for how, a, b, c, d in matcher.get_opcodes()]


def draw_bars(heights: Sequence[int], *, width: int = 360, height: int = 90) -> list[tuple[float, float, float, float]]:
    """(x, y, width, height) of the bars of a histogram in a drawing of that size."""
    step, top = width / len(heights), max([*heights, 1])
    return [(round(i * step, 1), round(height * (1 - n / top), 1), round(step - 1, 1), round(height * n / top, 1))
            for i, n in enumerate(heights)]  # fmt: skip


@cache
def template_environment() -> Any:
    """The jinja2 environment of the pages, in which everything is escaped."""
    jinja2 = require("jinja2", "The audit's pages", "audit")
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("rusbeir.audit"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"shown": clean_text, "percent": lambda share: f"{share:.2%}", "number": lambda n: f"{n:,}"}
    made.globals |= {"differences": find_differences, "bars": draw_bars}
    return made
