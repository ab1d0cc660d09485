"""Write a dataset as one folder that the hub and other tools load."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from rusbeir import __version__
from rusbeir.datasets import CARD, card_bytes, find_entry, find_obstacle, load_material, read_card, take_split
from rusbeir.errors import BadInput, option
from rusbeir.publishing.evidence import collect_evidence
from rusbeir.publishing.metadata import Published, write_citation, write_croissant
from rusbeir.publishing.readme import write_readme
from rusbeir.publishing.tables import write_nanobeir, write_parquet, write_trec, write_zip
from rusbeir.storage import atomic_folder
from rusbeir.types import Card, Progress, silent


class About(TypedDict, total=False):
    """The facts about a dataset that replace those of its card; None leaves the card as it is."""

    name: str | None
    licence: str | None
    source_url: str | None
    author: str | None
    citation: str | None


_CARD_FIELDS = {"source_url": "source"}


def publish(
    dataset: str | Path,
    *,
    to: str | Path,
    language: str | None = None,
    split: str | None = None,
    validity: str | Path | None = None,
    i_have_permission: bool = False,
    progress: Progress = silent,
    **about: Unpack[About],
) -> dict[str, Any]:
    """Write a dataset into a new folder that the hub and other tools load.

    The folder has Parquet with a README.md that the hub, datasets and mteb read, beir.zip, tables for TREC's tools and
    ir_datasets, croissant.json and CITATION.cff; it appears when it is complete. For a folder that rusbeir made, the
    README says how it was made and checked. What is about an earlier version of the dataset (an audit, scores) is left
    out, after a warning.

    Args:
        dataset: A name or a path.
        to: The new folder.
        language: The language of a path without a card.
        split: A split of a path; by default all of them.
        validity: The file with what `rusbeir validity --json` printed of the dataset; its verdict is added.
        i_have_permission: Whether the owners permit what the licence does not; the card repeats it.
        progress: Receives what is being done.
        **about: What the card does not say: the `name` under which it is published, its `licence`, and the
            `source_url`, `author` and `citation` of the dataset that it was made of, or of an original.

    Returns:
        A report with the `files` (docs/json.md).

    Raises:
        BadInput: The licence does not allow publishing and no permission is claimed, the folder holds something, or
            the validity is of other ports.

    Examples:
        >>> publish("scifact-kk", to="scifact-kk-published")["files"]  # doctest: +SKIP
    """
    to = Path(to)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise BadInput(f"{to} holds something else. Choose a new folder, or empty it.")
    material = load_material(dataset, language=language, split=split, progress=progress)
    source = material.dataset
    folder = Path(dataset)
    main_split = _find_split(folder, source.card, material.splits)
    card = _describe(replace(source.card, split=main_split), about)
    evidence = collect_evidence(
        source.card,
        folder if folder.is_dir() else None,
        Path(validity) if validity is not None else None,
        language=language,
    )
    part = source if len(material.splits) == 1 else take_split(source, main_split, material.splits[main_split])
    published = Published(
        card=card,
        evidence=evidence,
        counts={"n_docs": len(source.corpus), "n_queries": len(source.queries)},
        splits={name: sum(map(len, qrels.values())) for name, qrels in material.splits.items()},
        fingerprint=source.fingerprint,
        split_fingerprint=part.fingerprint,
        permission=i_have_permission,
    )
    if not i_have_permission:
        _refuse(published, copied=isinstance(dataset, str) and find_entry(dataset) is not None)
    card = replace(card, licence=published.licence)
    counts = {"n_docs": len(source.corpus), "n_queries": len(part.queries), "n_qrels": published.splits[main_split]}
    described = card_bytes(card, part.fingerprint, **counts)
    with atomic_folder(to) as new:
        write_parquet(source, material.splits, new, progress)
        if published.nano_split:
            write_nanobeir(source, material.splits[published.split], new)
        write_zip(source, material.splits, described, new)
        write_trec(source, material.splits, new)
        (new / CARD).write_bytes(described)
        write_readme(published, new)
        write_croissant(published, new)
        write_citation(published, new)
    return _report(published, to)


def _report(published: Published, to: Path) -> dict[str, Any]:
    card, evidence = published.card, published.evidence
    return {
        "version": __version__,
        "dataset": card.name,
        "language": card.language,
        "query_language": card.asked_in,
        "licence": published.licence,
        "sample_creation": evidence.sample_creation,
        "annotations_creators": evidence.annotations_creators,
        "validity": list(evidence.validity),
        **published.counts,
        "splits": dict(published.splits),
        "fingerprint": published.fingerprint,
        "split": card.split,
        "split_fingerprint": published.split_fingerprint,
        "to": str(to),
        "files": sorted(path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file()),
    }


def _find_split(folder: Path, card: Card, splits: Collection[str]) -> str:
    """The split that is measured where none is named: that of the folder's own card, else `test`, else the first."""
    card_split = str(read_card(folder).get("split")) if folder.exists() else card.split
    return next(name for name in (card_split, "test", *splits) if name in splits)


def _describe(card: Card, about: About) -> Card:
    """The card with what is stated in its place; URL, author and citation are the source's, where it has one."""
    stated: dict[str, Any] = {_CARD_FIELDS.get(key, key): value for key, value in about.items() if value is not None}
    origin = card.provenance.get("source")
    if isinstance(origin, Mapping):
        of_source = {key: stated[key] for key in ("source", "author", "citation") if key in stated}
        card = replace(card, provenance={**card.provenance, "source": {**origin, **of_source}})
        stated = {key: value for key, value in stated.items() if key not in ("author", "citation")}
    return replace(card, **stated)


def _refuse(published: Published, *, copied: bool) -> None:
    """Raise BadInput where a licence forbids publishing, or where that cannot be told."""
    card = published.card
    obstacle = find_obstacle(card.name, published.licence, card.provenance, copied=copied)
    if obstacle is None:
        return
    state = f" State it with {option('licence')}, as in {option('licence', 'CC-BY-4.0')}."
    raise BadInput(
        f"{obstacle[0].upper()}{obstacle[1:]}.{state if 'not known' in obstacle else ''} With the permission of its "
        f"owners, give {option('i_have_permission', True)}, which the card repeats."
    )
