"""The parts of a document that decide its similarity to a query: gradient saliency along relative position.

As in PosIR's analysis: the gradient of the cosine of a query and a relevant document with respect to the input
embeddings of the document's tokens; the L2 norm of each token's; scaled to at most 1; resampled to POINTS points from
the start of the document to its end; mean and standard deviation over pairs. Two steps are in the published script
only, not in the paper. The tokens that the tokenizer adds are left out (the last one, or the first and the last). And
norms are clipped at their 99th percentile and divided by it, where the paper divides by the largest. Both are done here
unless special_tokens or scale="max" is set.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from rusbeir import __version__
from rusbeir.datasets import Span, load
from rusbeir.diagnostics.gradients import GradientModel, open_gradient_model
from rusbeir.diagnostics.saliency_curve import NAMES, POINTS, SCALES, THIRDS, CurveSums, scale_norms
from rusbeir.diagnostics.spans import load_spans
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import bootstrap_intervals, cluster_scores
from rusbeir.retrieval import DenseSystem, Spec, Stage, escape, resolve
from rusbeir.text import batched
from rusbeir.types import Dataset, Progress, silent

KIND = "saliency"
_BLOCK_PAIRS = 256
"""Pairs that are sorted by length and held at once."""


class Third(NamedTuple):
    """The share of a document's saliency that one third of its tokens has: mean over pairs, 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Saliency:
    """The curve of one model on one dataset, and what it was computed from."""

    dataset: str
    language: str
    system: str
    signature: str
    fingerprint: str
    seed: int
    scale: str
    special_tokens: bool
    min_tokens: int
    positions: tuple[float, float] | None
    """Between which, relative to the length of the document, the span that answers is; None for any."""
    n_pairs: int
    n_documents: int
    n_without: int
    """Pairs left out, because the document has no token or no gradient."""
    n_truncated: int
    """Pairs whose document is longer than the model reads; its end is not in the curve."""
    max_tokens: int | None
    tokens_cut: float
    """The share of the documents' tokens that the model does not read."""
    median_tokens: float
    """The median length of the documents as they are, special tokens and prefix included."""
    cosine: float
    """The mean similarity of the pairs."""
    mean: list[float]
    """The means at POINTS relative positions, from the first token to the last."""
    sd: list[float]
    """The standard deviation over pairs, divided by their number as numpy.std does."""
    thirds: list[Third]
    """An even spread gives each 1/3. The intervals resample documents, as pairs of one document are not independent."""

    @property
    def sentences(self) -> list[str]:
        """The meaning of the numbers, and what they leave out, in words."""
        verdict = "Saliency is spread evenly over documents, as far as the intervals tell."
        if any(third.low > 1 / THIRDS or third.high < 1 / THIRDS for third in self.thirds):
            most = max(range(THIRDS), key=lambda number: self.thirds[number].mean)
            share = f"{100 * self.thirds[most].mean:.1f} %"
            verdict = f"Saliency is not spread evenly: the {NAMES[most]} third has {share} of it, not 33.3."
        pairs = (
            f"{self.n_pairs:,} pairs of {self.n_documents:,} documents, {self.median_tokens:,.0f} tokens in the median"
        )
        if self.positions:
            pairs += f", answered from {self.positions[0]} to {self.positions[1]} of their length"
        lines = [verdict, f"{pairs}."]
        if self.n_truncated:
            lines.append(
                f"In {self.n_truncated:,} pairs the document is cut at {self.max_tokens:,} tokens: "
                f"{100 * self.tokens_cut:.1f} % of all tokens are not in the curve."
            )
        if self.n_without:
            lines.append(f"{self.n_without:,} pairs were left out: no token, or no gradient.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `rusbeir diagnose` prints and `rusbeir report` reads."""
        thirds = [third._asdict() for third in self.thirds]
        return {"kind": KIND, "version": __version__, **asdict(self), "thirds": thirds, "sentences": self.sentences}


class SaliencySettings(TypedDict, total=False):
    """The pairs that are drawn, and how their gradients become a curve."""

    pairs: int
    """How many are drawn."""
    min_tokens: int
    """The fewest tokens of a document, as the model counts them."""
    positions: tuple[float, float] | None
    """The middle of the span that answers the query is between these two, relative to the document's length."""
    special_tokens: bool
    scale: str
    batch_tokens: int
    """Batches hold documents of similar length and at most this many tokens, or one document."""
    seed: int


def diagnose_saliency(
    dataset: str | Path | Dataset,
    model: str,
    *,
    language: str | None = None,
    split: str | None = None,
    spans: str | Path | None = None,
    progress: Progress = silent,
    **settings: Unpack[SaliencySettings],
) -> Saliency:
    """Diagnose the saliency of a dense model on pairs of a query and a relevant document.

    model is what `dense(…)` takes, or such a system with its options; spans is a list of spans for a dataset that has
    none of its own. Raises BadInput for a model without gradients and where no pair is left.

    >>> diagnose_saliency("xquad/en", "all-MiniLM-L6-v2").thirds  # doctest: +SKIP
    """
    drawing = _Settings(**settings)
    positions = drawing.positions
    if spans and not positions:
        raise BadInput(f"{option('spans')} has no use without {option('positions')}.")
    source = dataset
    if not isinstance(dataset, Dataset):
        dataset = load(dataset, language=language, split=split, progress=progress)
    card = dataset.card
    system = resolve(model if model.startswith("dense(") else Spec((Stage("dense", (model,)),)), language=card.language)
    if not isinstance(system, DenseSystem) or system.chunk:
        raise BadInput(f"{system.name}: saliency is that of one dense model which reads whole documents.")
    judged = [
        (query_id, doc_id) for query_id, row in dataset.qrels.items() for doc_id, grade in row.items() if grade > 0
    ]
    if positions:
        file = Path(spans) if spans else None
        known = load_spans(source, dataset, file, language=language, split=split, progress=progress)
        judged = [pair for pair in judged if _is_between(known.get(pair[0]), pair[1], positions)]
    judged.sort()
    gradients = open_gradient_model(system.name, system.encoder)
    sums = _sum_curves(dataset, judged, system, gradients, drawing, progress)
    if not sums.doc_ids:
        which = f" of at least {drawing.min_tokens:,} tokens" if drawing.min_tokens else ""
        which += f", answered from {positions[0]} to {positions[1]} of its length," if positions else ""
        raise BadInput(f"{card.name} has no query with a relevant document{which} whose saliency could be computed.")
    return _describe(dataset, system, gradients.max_tokens, drawing, sums)


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """The pairs that are drawn, and how their gradients become a curve. Raises BadInput for what cannot be right."""

    pairs: int = 200
    min_tokens: int = 0
    positions: tuple[float, float] | None = None
    special_tokens: bool = False
    scale: str = "p99"
    batch_tokens: int = 2048
    seed: int = 0

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise BadInput(f"{option('scale')} is {self.scale!r}; it must be {' or '.join(SCALES)}.")
        if self.positions and not 0 <= self.positions[0] <= self.positions[1] <= 1:
            raise BadInput(
                f"{option('positions')} is from {self.positions[0]} to {self.positions[1]}; give two numbers from 0 "
                "to 1."
            )

    @property
    def recipe(self) -> str:
        """The settings that decide a curve besides the model, for the signature."""
        recipe = f"tokens:{'all' if self.special_tokens else 'text'}|scale:{self.scale}|points:{POINTS}"
        recipe += f"|min:{self.min_tokens}"
        return recipe + (f"|positions:{self.positions[0]}-{self.positions[1]}" if self.positions else "")


def _sum_curves(
    dataset: Dataset,
    judged: Sequence[tuple[str, str]],
    system: DenseSystem,
    gradients: GradientModel,
    settings: _Settings,
    progress: Progress,
) -> CurveSums:
    """Return the sums of the curves of the pairs that are drawn."""
    sums = CurveSums()
    drawn = _draw_pairs(dataset, judged, system, gradients, settings, progress)
    for block in batched(drawn, _BLOCK_PAIRS):
        for batch in _batch_by_length(block, gradients.max_tokens, settings.batch_tokens):
            gradient_norms, cosines = gradients.differentiate(
                [pair.query for pair in batch], [pair.text for pair in batch]
            )
            for pair, tokens, cosine in zip(batch, gradient_norms, cosines, strict=True):
                norms = tokens.norms if settings.special_tokens else tokens.norms[tokens.is_text]
                sums.add(pair.doc_id, scale_norms(norms, settings.scale), cosine, pair.n_tokens, gradients.max_tokens)
            progress("saliency", sums.n_seen, min(settings.pairs, len(judged)))
    return sums


def _describe(
    dataset: Dataset, system: DenseSystem, max_tokens: int | None, settings: _Settings, sums: CurveSums
) -> Saliency:
    n = len(sums.doc_ids)
    mean = sums.curve / n
    thirds = np.array(sums.thirds).T
    intervals = bootstrap_intervals(cluster_scores(thirds, sums.doc_ids), seed=settings.seed)
    encoder = f"{system.encoder.signature}|sep:{escape(system.model.separator)}"
    return Saliency(
        dataset=dataset.card.name,
        language=dataset.card.language,
        system=system.name,
        signature=f"saliency|{encoder}|{settings.recipe}|v:{__version__}",
        fingerprint=dataset.fingerprint,
        seed=settings.seed,
        scale=settings.scale,
        special_tokens=settings.special_tokens,
        min_tokens=settings.min_tokens,
        positions=settings.positions,
        n_pairs=n,
        n_documents=len(set(sums.doc_ids)),
        n_without=sums.n_seen - n,
        n_truncated=sums.n_truncated,
        max_tokens=max_tokens,
        tokens_cut=sums.tokens_cut / max(1, sum(sums.lengths)),
        median_tokens=float(np.median(sums.lengths)),
        cosine=sums.cosine / n,
        mean=mean.tolist(),
        sd=np.sqrt(np.maximum(sums.squares / n - mean**2, 0.0)).tolist(),
        thirds=[
            Third(float(row.mean()), float(low), float(high))
            for row, (low, high) in zip(thirds, intervals, strict=True)
        ],
    )


class _Pair(NamedTuple):
    query: str
    doc_id: str
    text: str
    n_tokens: int


def _is_between(span: Span | None, doc_id: str, positions: tuple[float, float]) -> bool:
    """Return whether the span is in that document, and its middle between these relative positions."""
    if span is None or not span.chars or span.doc_id not in {"", doc_id}:
        return False
    low, high = positions
    return low <= (span.start + span.end) / 2 / span.chars <= high


def _draw_pairs(
    dataset: Dataset,
    judged: Sequence[tuple[str, str]],
    system: DenseSystem,
    gradients: GradientModel,
    settings: _Settings,
    progress: Progress,
) -> Iterator[_Pair]:
    """Draw pairs in a random order, as many as are wanted or fewer; texts are read when they are asked for."""
    order = np.random.default_rng(settings.seed).permutation(len(judged)).tolist()
    drawn = 0
    for number, rows in enumerate(batched(order, _BLOCK_PAIRS)):
        texts = []
        for query_id, doc_id in (judged[row] for row in rows):
            with contextlib.suppress(KeyError):
                doc = dataset.corpus[doc_id]
                texts.append((dataset.queries[query_id], doc_id, system.model.join(doc.title, doc.text)))
        for text, n_tokens in zip(texts, gradients.count_tokens([text for *_, text in texts]), strict=True):
            if n_tokens >= settings.min_tokens:
                yield _Pair(*text, n_tokens)
                drawn += 1
                if drawn == settings.pairs:
                    return
        if settings.min_tokens:
            progress("choosing pairs", min((number + 1) * _BLOCK_PAIRS, len(order)), len(order))


def _batch_by_length(pairs: Sequence[_Pair], max_tokens: int | None, batch_tokens: int) -> Iterator[list[_Pair]]:
    """The pairs in batches of similar length, of at most batch_tokens tokens with their padding, or of one pair."""
    batch: list[_Pair] = []
    for pair in sorted(pairs, key=lambda pair: pair.n_tokens):
        longest = min(pair.n_tokens, max_tokens or pair.n_tokens)
        if batch and (len(batch) + 1) * longest > batch_tokens:
            yield batch
            batch = []
        batch.append(pair)
    if batch:
        yield batch
