"""The making of a dataset, in sentences for the card of a published one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rusbeir.text import escape_markdown

_FIELDS = {"title": "titles", "text": "texts", "query": "queries"}


def describe_making(made_by: str, provenance: Mapping[str, Any], *, read_by_people: bool) -> list[str]:
    """Describe each fact of a card's provenance in a sentence; [] for a dataset that rusbeir did not make."""
    lines = list(_MAKERS[made_by](provenance)) if made_by in _MAKERS else []
    if made_by in ("queries", "qc") and not read_by_people:
        lines.append("No person has read these queries.")
    if cleaned := _mapping(provenance.get("cleaned")):
        before, after = _mapping(cleaned.get("before")), _mapping(cleaned.get("after"))
        counts = ", ".join(f"{name} {_number(n)} → {_number(after.get(name))}" for name, n in before.items())
        lines.append(f"Flagged texts were removed or repaired (`rusbeir audit clean`): {counts}.")
    return lines


def _describe_port(provenance: Mapping[str, Any]) -> Iterator[str]:
    settings, counts = _mapping(provenance.get("settings")), _mapping(provenance.get("counts"))
    for row in _rows(provenance.get("translators")):
        about = f": {escape_markdown(row['about'])}" if row.get("about") else ""
        yield (
            f"{escape_markdown(str(row.get('name')))} (`{_code(row.get('signature'))}`) translated "
            f"{_number(row.get('segments'))} segments{about}."
        )
    fields = str(settings.get("fields", "")).split(",")
    if untranslated := [word for name, word in _FIELDS.items() if name not in fields and fields != [""]]:
        yield f"Not translated: {', '.join(untranslated)}."
    if n_untranslated := counts.get("kept"):
        yield f"{_number(n_untranslated)} of {_number(counts.get('segments'))} segments stayed untranslated."
    if (sample := settings.get("sample", "all")) != "all":
        yield f"Only a sample of the source's documents: {escape_markdown(sample)}, judged ones first."


def _describe_rewriting(provenance: Mapping[str, Any]) -> Iterator[str]:
    for row in _rows(provenance.get("translators")):
        yield (
            f"A language model (`{_code(row.get('signature'))}`) rewrote {_number(row.get('rewritten'))} documents, as "
            f"the corpus {escape_markdown(row.get('corpus'))}; {_number(row.get('kept_human'))} stayed as people wrote "
            "them."
        )
    if (sample := _mapping(provenance.get("settings")).get("sample", "all")) != "all":
        yield f"Only a sample of the source's documents: {escape_markdown(sample)}."


def _describe_queries(provenance: Mapping[str, Any]) -> Iterator[str]:
    generator = _mapping(provenance.get("generator"))
    yield (
        f"The language model {escape_markdown(generator.get('model'))} wrote the queries; its prompts and settings: "
        f"`{_code(generator.get('signature'))}`."
    )
    if counts := _mapping(provenance.get("counts")):
        requested, made, dropped = (_number(counts.get(name)) for name in ("asked", "made", "dropped"))
        yield f"Of {requested} queries asked for, {made} were made and {dropped} dropped as not valid."


def _describe_checking(provenance: Mapping[str, Any]) -> Iterator[str]:
    source = _mapping(_mapping(provenance.get("source")).get("provenance"))
    if "generator" in source:
        yield from _describe_queries(source)
    rules = _mapping(provenance.get("rules"))
    rankers = ", ".join(f"`{_code(ranker)}`" for ranker in rules.get("rankers") or ()) or "no rankers"
    yield f"Labels by a language model (`{_code(rules.get('labeller'))}`); candidates by {rankers}."
    actions = [
        f"{escape_markdown(row.get('step'))}: {escape_markdown(row.get('action'))} {_number(row.get('decisions'))}"
        for row in _rows(_mapping(provenance.get("counts")).get("decisions"))
    ]
    if actions:
        yield f"Its decisions: {'; '.join(actions)}."
    for name in ("documents", "queries", "judgements"):
        if counts := _mapping(_mapping(provenance.get("counts")).get(name)):
            yield f"{name.capitalize()}: {_number(counts.get('before'))} before, {_number(counts.get('after'))} after."


_RULES = {
    "any": "in any language",
    "own": "in the language of the query",
    "other": "in the languages other than that of the query",
}


def _describe_pool(provenance: Mapping[str, Any]) -> Iterator[str]:
    names = [
        f"{escape_markdown(source.get('name'))} ({escape_markdown(source.get('language'))})"
        for source in _rows(provenance.get("sources"))
    ]
    relevant = _mapping(provenance.get("settings")).get("relevant")
    yield (
        f"Joined from {', '.join(names)} by `rusbeir datasets pool`: documents {_RULES.get(str(relevant), 'of some')} "
        "count as judged for a query. The language of a record is in `lang`, and at the end of the ids."
    )


_MAKERS = {
    "pool": _describe_pool,
    "port": _describe_port,
    "rewrite": _describe_rewriting,
    "queries": _describe_queries,
    "qc": _describe_checking,
}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _rows(value: object) -> list[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "an unknown number of"


def _code(value: object) -> str:
    return escape_markdown(value, code=True)
