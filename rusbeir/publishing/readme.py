"""README.md of a published dataset: a head that the hub, datasets and mteb read, and a page for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from string import Template
from typing import Any

from rusbeir import __version__
from rusbeir.audit import FLAGS_MEANING
from rusbeir.datasets import UNKNOWN, find_entry, find_hub_licence
from rusbeir.errors import require
from rusbeir.languages import iso639_3, scripts_of
from rusbeir.publishing.evidence import Evidence
from rusbeir.publishing.making import describe_making
from rusbeir.publishing.metadata import Published
from rusbeir.publishing.tables import CORPUS, NANO_CORPUS, NANO_QRELS, QUERIES, name_qrels_table
from rusbeir.text import escape_markdown

_PAGE = Path(__file__).with_name("card.md")
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_SCRIPTS = {
    "Arabic": "Arab", "Armenian": "Armn", "Bengali": "Beng", "Cyrillic": "Cyrl", "Devanagari": "Deva",
    "Georgian": "Geor", "Greek": "Grek", "Han": "Hans", "Hangul": "Hang", "Hebrew": "Hebr", "Khmer": "Khmr",
    "Lao": "Laoo", "Latin": "Latn", "Myanmar": "Mymr", "Tamil": "Taml", "Telugu": "Telu", "Thai": "Thai",
}  # fmt: skip
"""Unicode's name of a script -> the code that MTEB uses."""


def write_readme(published: Published, folder: Path) -> None:
    """Write README.md."""
    yaml = require("yaml", "Publishing", "hf")
    head = yaml.safe_dump(_make_head(published), allow_unicode=True, sort_keys=False, width=100)
    page = Template(_PAGE.read_text(encoding="utf-8")).substitute(_describe_parts(published))
    (folder / "README.md").write_text(f"---\n{head}---\n\n{page}", encoding="utf-8")


def list_mteb_fields(published: Published) -> dict[str, Any]:
    """The arguments of MTEB's TaskMetadata; how texts and judgements were made only as far as evidence supports it."""
    evidence = published.evidence
    fields = {
        "name": published.name,
        "description": published.description,
        "type": "Retrieval",
        "dataset": {"path": "FOLDER OR REPOSITORY", "revision": "COMMIT"},
        "eval_langs": [_find_mteb_language(language) for language in published.languages],
        "eval_splits": [published.split],
        "main_score": "ndcg_at_10",
        "sample_creation": evidence.sample_creation,
        "annotations_creators": evidence.annotations_creators,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _make_head(published: Published) -> dict[str, Any]:
    card, evidence = published.card, published.evidence
    n_docs = published.counts["n_docs"]
    files = {
        "corpus": {"corpus": CORPUS},
        "queries": {"queries": QUERIES},
        "default": {split: name_qrels_table(split) for split in published.splits},
    }
    if nano := published.nano_split:
        # Of several splits MTEB takes the one that it evaluates.
        files["corpus"] |= {**dict.fromkeys(published.splits, CORPUS), nano: NANO_CORPUS}
        files["queries"] |= dict.fromkeys([*published.splits, nano], QUERIES)
        files["qrels"] = {**files["default"], nano: NANO_QRELS}
    configs = [
        {"config_name": name, "data_files": [{"split": split, "path": path} for split, path in paths.items()]}
        for name, paths in files.items()
    ]
    return {
        "pretty_name": published.title,
        "language": list(published.languages),
        **_name_licence(published.licence),
        "multilinguality": [
            "multilingual"
            if card.query_language or card.languages
            else "translated"
            if evidence.texts_made_by == "port"
            else "monolingual"
        ],
        "size_categories": [next((name for limit, name in _SIZES if n_docs < limit), "n>1M")],
        **({"annotations_creators": [evidence.annotations_creators]} if evidence.annotations_creators else {}),
        **({"source_datasets": repositories} if (repositories := _find_repositories(published)) else {}),
        "task_categories": ["text-retrieval"],
        "task_ids": ["document-retrieval"],
        "tags": ["beir", "rusbeir"],
        "configs": configs,
    }


def _name_licence(licence: str) -> dict[str, str]:
    if known := find_hub_licence(licence):
        return {"license": known}
    return {"license": "unknown"} if licence in UNKNOWN else {"license": "other", "license_name": licence}


def _find_repositories(published: Published) -> list[str]:
    """Find the hub's repositories of the dataset that this one was made of, as far as it is a registered one."""
    entry = find_entry(str(published.origin.get("name", "")))
    return [repository.partition("@")[0] for repository in entry.hub] if entry else []


def _describe_parts(published: Published) -> dict[str, str]:
    """Describe the parts of the page, by the names that its template has for them."""
    judged = "; ".join(f"{escape_markdown(split)}: {n:,} judgements" for split, n in published.splits.items())
    evidence = published.evidence
    sentences = describe_making(evidence.made_by, published.card.provenance, read_by_people=evidence.n_read > 0)
    making = "\n".join(f"- {line}" for line in sentences)
    return {
        "title": escape_markdown(published.title),
        "description": escape_markdown(published.description, max_chars=1_000),
        "counts": f"{published.counts['n_docs']:,} documents, {published.counts['n_queries']:,} queries; {judged}.",
        "fingerprint": _describe_fingerprint(published),
        "licence": " ".join(_describe_licence(published)),
        "making": f"## How it was made\n\n{making}\n\n" if making else "",
        "citation": f"## Citation\n\n{citation}\n\n" if (citation := _describe_citation(published)) else "",
        "checks": "\n".join(f"- {line}" for line in _describe_checks(published.evidence, published.splits)),
        "split": repr(published.split),
        "nanobeir": f"{_describe_nanobeir(nano)}\n\n" if (nano := published.nano_split) else "",
        "mteb": "\n".join(f"        {name}={value!r}," for name, value in list_mteb_fields(published).items()),
    }


def _describe_licence(published: Published) -> Iterator[str]:
    yield f"{escape_markdown(published.licence)}."
    if origin := published.origin:
        source = f", {escape_markdown(origin['source'])}" if origin.get("source") else ""
        its_licence = str(origin.get("licence") or "not stated")
        if its_licence == published.licence:
            yield f"It is that of the source{source}, of which this is a derivative work."
        elif its_licence in UNKNOWN:
            yield f"The publisher states it of the source{source}, of which this is a derivative work."
        else:
            yield f"That of the source{source}, of which this is a derivative work, is {escape_markdown(its_licence)}."
    if published.permission:
        yield "The publisher states that the owners have permitted this publication."


def _describe_fingerprint(published: Published) -> str:
    whole = f"Fingerprint (rusbeir {__version__})"
    if len(published.splits) == 1:
        return f"{whole}: `{published.fingerprint}`."
    described = f"`{escape_markdown(published.split, code=True)}`: `{published.split_fingerprint}`"
    return f"{whole} of the split {described}; of all splits together: `{published.fingerprint}`."


def _describe_citation(published: Published) -> str:
    """Describe who made the dataset, or the one that it was made of, and how they want to be cited."""
    author = f"By {escape_markdown(published.author.removesuffix('.'))}." if published.author else ""
    # A block of indented lines cannot be closed by what it holds.
    text = "\n".join(f"    {line}" for line in published.citation[:10_000].splitlines())
    return "\n\n".join(part for part in (author, text) if part)


def _describe_nanobeir(split: str) -> str:
    name = split.removeprefix("Nano").lower()
    return (
        f"With sentence-transformers' `NanoBEIREvaluator(dataset_names=[{name!r}], dataset_id=…)`: the split `{split}` "
        "has every query and document of this dataset, titles before texts, and what has a grade above 0 as relevant."
    )


def _describe_checks(evidence: Evidence, splits: Collection[str]) -> list[str]:
    report = evidence.report
    lines = []
    if report is not None:
        flagged = report["flagged"]
        lines.append(
            f"Rules (`rusbeir audit check`): {flagged['segments']:,} of {report['n_segments']:,} segments flagged "
            f"({flagged['share']:.2%}). {FLAGS_MEANING}"
        )
        chrf = report["levels"].get("documents", {}).get("chrF")
        if chrf is not None:
            lines.append(f"Back-translation of the documents: chrF {chrf:.2f}.")
        if others := sorted(set(report.get("splits", ())).difference(splits)):
            names = escape_markdown(", ".join(others))
            lines.append(f"These checks include the queries of splits that are not in this folder: {names}.")
    lines += evidence.validity
    if evidence.made_by == "qc":
        lines.append("A language model and rankers checked its judgements (`rusbeir synth qc`), as said above.")
    if evidence.made_by == "port" and not evidence.validity:
        lines.append("Whether it orders systems as its source does was not measured (`rusbeir validity`).")
    if evidence.agreement:
        lines.append(f"Agreement with the whole (`rusbeir nano`): {evidence.agreement}")
    if evidence.n_judged:
        lines.append(f"A language model scored {evidence.n_judged:,} texts (`rusbeir audit judge`).")
    lines += filter(None, (evidence.marked, evidence.people))
    return lines or ["No check is recorded."]


def _find_mteb_language(tag: str) -> str:
    """MTEB's code of a language, such as rus-Cyrl."""
    script = next((_SCRIPTS[name] for name in scripts_of(tag) if name in _SCRIPTS), "Zyyy")
    return f"{iso639_3(tag.partition('-')[0])}-{script}"
