"""The dataset that a port translates, as it was read, and the sample that is drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rusbeir.datasets import Material, load_material, name_qrels_file, sample_documents, take_split
from rusbeir.jobs import CORPUS
from rusbeir.translation.porting.folder import Order
from rusbeir.translation.segments.glossary import Glossary
from rusbeir.types import Card, Dataset, Progress


@dataclass(frozen=True, kw_only=True)
class Original:
    """A dataset that is to be translated, and what of it is."""

    whole: Material
    material: Material
    """What is translated: the whole, or a sample of its documents."""
    fingerprints: Mapping[str, str]
    """split -> fingerprint of the whole dataset with that split."""

    @property
    def card(self) -> Card:
        """The card of the whole dataset."""
        return self.whole.dataset.card

    def describe_settings(self, order: Order, terms: Glossary | None) -> dict[str, str]:
        """Describe what decides which texts are translated, and how."""
        return {
            "fields": ",".join(self.whole.fields),
            "sample": "all" if order.sample is None else f"{order.sample} (seed {order.seed})",
            "glossary": terms.signature if terms else "none",
        }

    def identify(self, order: Order, target: str, settings: Mapping[str, str]) -> dict[str, str]:
        """Identify the port in its journal, which another port cannot continue."""
        return {
            CORPUS: replace(self.whole.dataset, queries={}, qrels={}).fingerprint,
            "from": self.material.language,
            "to": target,
            **settings,
            # Which documents are drawn depends on the judgements.
            **({} if order.sample is None else {"splits": ",".join(self.whole.splits)}),
        }


def open_original(
    dataset: str | Path | Dataset, order: Order, about: Mapping[str, str | None], out: Path, progress: Progress
) -> Original:
    """Read the dataset with the splits that the port in out has; about replaces what its card says."""
    whole = load_material(
        dataset,
        language=order.language,
        split=order.split,
        also={path.stem for path in out.glob("qrels/*.tsv")},
        all_queries=order.all_queries,
        fields=order.fields,
        progress=progress,
    )
    stated: dict[str, Any] = {name: value for name, value in about.items() if value is not None}
    whole = replace(whole, dataset=replace(whole.dataset, card=replace(whole.dataset.card, **stated)))
    for split in whole.splits:
        name_qrels_file(split)  # A split that cannot be written is refused before anything is paid.
    material = whole
    if order.sample is not None:
        material = replace(whole, dataset=sample_documents(whole.dataset, order.sample, order.seed))
    fingerprints = {split: take_split(whole.dataset, split, qrels).fingerprint for split, qrels in whole.splits.items()}
    return Original(whole=whole, material=material, fingerprints=fingerprints)
