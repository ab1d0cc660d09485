"""Write a dataset as one folder that the hub and other tools load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rusbeir import __version__
from rusbeir.datasets.formats.beir import CARD, card_bytes
from rusbeir.errors import BadInput
from rusbeir.publishing.evidence import collect_evidence
from rusbeir.publishing.licences import refuse_licence
from rusbeir.publishing.metadata import Published, write_citation, write_croissant
from rusbeir.publishing.readme import write_readme
from rusbeir.publishing.tables import write_nanobeir, write_parquet, write_trec, write_zip
from rusbeir.storage import atomic_folder
from rusbeir.translation.port.fields import load_material
from rusbeir.types import Progress, silent


def publish(
    dataset: str | Path,
    *,
    to: str | Path,
    language: str | None = None,
    split: str | None = None,
    validity: str | Path | None = None,
    i_have_permission: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Write the dataset into the new folder to, and return a report (docs/json.md).

    Parquet with a README.md that the hub, datasets and mteb read, beir.zip, tables for TREC's tools and ir_datasets,
    croissant.json and CITATION.cff. Of a folder that rusbeir made, the README says how it was made and checked;
    validity, what `rusbeir validity --json` printed of it, adds its verdict. What is about an earlier version of
    the dataset (an audit, scores) is left out, after a warning. The folder appears when it is complete.
    Raises BadInput where the licence does not allow publishing and no permission is claimed, where the folder holds
    something, and for a validity of other ports.

    >>> publish("scifact-kk", to="scifact-kk-published")["files"]  # doctest: +SKIP
    """
    to = Path(to)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise BadInput(f"{to} holds something else. Choose a new folder, or empty it.")
    material = load_material(dataset, language=language, split=split, progress=progress)
    source = material.dataset
    folder = Path(dataset)
    evidence = collect_evidence(
        source.card,
        folder if folder.is_dir() else None,
        Path(validity) if validity is not None else None,
        language=language,
    )
    published = Published(
        card=source.card,
        evidence=evidence,
        counts={"n_docs": len(source.corpus), "n_queries": len(source.queries)},
        splits={name: sum(map(len, qrels.values())) for name, qrels in material.splits.items()},
        fingerprint=source.fingerprint,
        permission=i_have_permission,
    )
    if not i_have_permission:
        refuse_licence(source.card.name, published.licence, derived=bool(evidence.made_by))
    card = replace(source.card, licence=published.licence)
    described = card_bytes(card, source.fingerprint, **published.counts, n_qrels=sum(published.splits.values()))
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
    return {
        "version": __version__,
        "dataset": source.card.name,
        "language": source.card.language,
        "licence": published.licence,
        "sample_creation": evidence.sample_creation,
        "annotations_creators": evidence.annotations_creators,
        "validity": list(evidence.validity),
        **published.counts,
        "splits": dict(published.splits),
        "fingerprint": source.fingerprint,
        "to": str(to),
        "files": sorted(path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file()),
    }
