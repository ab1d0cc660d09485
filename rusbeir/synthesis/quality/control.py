"""Quality control of a test set by a language model and several rankers, as AIR-Bench and PosIR (2024, 2026) do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from rusbeir import __version__
from rusbeir.datasets import load_material
from rusbeir.evaluation import find_families
from rusbeir.jobs import (
    CHARS_PER_TOKEN,
    JOURNAL,
    WORK,
    CharBudget,
    Journal,
    LlmJob,
    LlmOptions,
    LlmRequest,
    bound_request,
    describe_time,
    estimate_seconds,
    hold_folder,
    list_missing_prices,
    read_llm_options,
    task_key,
    tell_prompt_language,
)
from rusbeir.retrieval import RunSettings
from rusbeir.synthesis.quality.candidates import bound_candidates
from rusbeir.synthesis.quality.checked_set import CheckedSet
from rusbeir.synthesis.quality.decisions import count_decisions, mark_undone, read_undone
from rusbeir.synthesis.quality.relevance import RELEVANCE_PROMPTS, Labeller, make_payload, make_question, sign_labels
from rusbeir.synthesis.quality.steps import Control, Rules, list_positives
from rusbeir.synthesis.queries.generated import read_generated
from rusbeir.text import hide_passwords
from rusbeir.types import Dataset, Doc, Progress, silent

_ANSWER_CHARS = 150
"""A usual answer: a label with its reason."""


class Labels(NamedTuple):
    """The number of labels a model is asked for, and what they take at most if no answer has to be repeated."""

    labels: int
    chars: int
    cost: float
    """The cost with one token a byte, and the longest answers that are allowed."""
    input_tokens: int
    """Estimated, as the tokens received, at CHARS_PER_TOKEN."""
    output_tokens: int


@dataclass(frozen=True, kw_only=True)
class QualityEstimate:
    """The requests that quality control would send to a model."""

    dataset: str
    source: Labels
    """The labels of the positives: exactly these."""
    candidate: Labels
    """The most labels of candidates, by the thresholds, as if all were as long as the longest query and document."""
    seconds: float
    """For the labels of both."""
    batch_cost: float | None
    """The cost of both in batches; None where nothing is known of them."""
    cached_cost: float | None
    """The cost of both where the provider has the prompt in its cache; None where its price is not known."""
    missing_options: tuple[str, ...]
    """Options without which the costs are not known."""
    assumption: str
    """A sentence that says what the time depends on."""


def control_quality(
    dataset: str | Path | Dataset,
    *,
    out: str | Path,
    llm: str,
    rules: Rules,
    language: str | None = None,
    split: str | None = None,
    undo: Sequence[str] = (),
    **request: Unpack[LlmRequest],
) -> dict[str, Any]:
    """Check a judged dataset, write what is left of it to the folder out, and return a report (docs/json.md).

    The model labels each query and its positives, then the candidates that the rankers find; a pair without a valid
    label after three answers stays as it is, and is counted. What was answered before is not asked again.

    Args:
        dataset: A registered name, a path, or a dataset.
        out: The folder of what is left; every decision is in its qa/decisions.jsonl.
        llm: The model at OPENAI_BASE_URL, which labels.
        rules: The systems that rank, and what their ranks decide.
        language: The language of a dataset without a card.
        split: A split of a path; by default all of them.
        undo: Ids of decisions that have no effect, in this run and later ones.
        **request: How the model is asked: `seed`, `budget_chars` (also, separately, for what rankers send to
            endpoints), `budget_cost`, `retry_failed`, `progress`, `tell`, and prices and limits of the model, such as
            `input_price` and `concurrency`.

    Returns:
        The report.

    Raises:
        BadInput: Nothing is left.
        BackendError: The service or a budget stopped the work, all that was answered being kept.

    Examples:
        >>> rules = Rules(rankers=["bm25", "dense(bge-m3)", "rerank(bge-reranker-v2-m3)"])
        >>> control_quality("made", out="checked", llm="qwen3-30b", rules=rules)["queries"]  # doctest: +SKIP
        {'before': 1200, 'after': 1043}
    """
    out = Path(out)
    job = LlmJob.of(llm, sign_labels(llm, request.get("seed", 0)), request)
    job.refuse_unpriced()
    material = load_material(dataset, language=language, split=split, progress=job.progress)
    source = material.dataset
    generated = read_generated(dataset)
    checked = CheckedSet(material=material, generated=generated, out=out, progress=job.progress)
    checked.refuse_itself(dataset)
    undone = read_undone(out, undo)
    meta = {"dataset": source.card.name, "fingerprint": source.fingerprint, "language": source.card.language}
    with hold_folder(out), Journal.open(out / WORK / JOURNAL, meta) as journal:
        budget = CharBudget(out / WORK, job.budget_chars) if job.budget_chars is not None else None
        settings = RunSettings(progress=job.progress, budget=budget)
        control = Control(dataset=source, generated=generated, rules=rules, settings=settings)
        labeller = Labeller(
            job=job,
            journal=journal,
            language=source.card.language,
            payload=lambda query_id, doc_id: make_payload(source.queries[query_id], source.corpus[doc_id]),
        )
        tell_prompt_language(RELEVANCE_PROMPTS, source.card.language, llm, job.tell)
        control.run(labeller)
        decisions = mark_undone(control.decisions, undone)
        recipe = {**asdict(rules), "engine": hide_passwords(rules.engine)}
        written = checked.write(decisions, undone, grade=rules.grade, rules={"labeller": job.signature, **recipe})
    return {
        "version": __version__,
        "dataset": source.card.name,
        "labeller": job.signature,
        "rules": recipe,
        "decisions": count_decisions(decision.to_dict() for decision in decisions),
        "stages": control.stages,
        "families": find_common_families(llm, rules, generated),
        "undone": sorted(undone),
        "out": str(out),
        **written,
    }


def estimate_quality(
    dataset: str | Path | Dataset,
    *,
    rules: Rules,
    language: str | None = None,
    split: str | None = None,
    progress: Progress = silent,
    **options: Unpack[LlmOptions],
) -> QualityEstimate:
    """Estimate what control_quality would ask at most; nothing is sent, no credentials are needed."""
    price, limits = read_llm_options(options)
    source = load_material(dataset, language=language, split=split, progress=progress).dataset
    generated = read_generated(dataset)
    question = make_question(source.card.language)

    def bound(query: str, document: Doc) -> tuple[int, float]:
        return bound_request(question, question.write(make_payload(query, document)), price)

    bounds: dict[bytes, tuple[int, float]] = {}
    for query_id, doc_id in list_positives(source):
        query, document = source.queries[query_id], source.corpus[doc_id]
        bounds[task_key(make_payload(query, document))] = bound(query, document)
    n = 0
    if rules.rankers:
        negatives = (
            len(generated[query_id]["negatives"]) if query_id in generated else 0 for query_id in source.queries
        )
        n = sum(
            bound_candidates(len(rules.rankers), n_negatives, rules.threshold, rules.negative_threshold)
            for n_negatives in negatives
        )
    query = max(source.queries.values(), key=_count_bytes)
    longest = bound(query, max(source.corpus, key=lambda doc: _count_bytes(doc.full_text)))
    sent, cost = sum(chars for chars, _ in bounds.values()), sum(cost for _, cost in bounds.values())
    labels = len(bounds) + n
    stages = _estimate_labels(len(bounds), sent, cost), _estimate_labels(n, n * longest[0], n * longest[1])
    total = stages[0].cost + stages[1].cost
    return QualityEstimate(
        dataset=source.card.name,
        source=stages[0],
        candidate=stages[1],
        batch_cost=None if price.batch is None else total * price.batch,
        cached_cost=None if price.cached is None else total,
        seconds=estimate_seconds(labels, labels * _ANSWER_CHARS // CHARS_PER_TOKEN, limits),
        missing_options=list_missing_prices(options),
        assumption=describe_time(limits),
    )


def _estimate_labels(n: int, chars: int, cost: float) -> Labels:
    return Labels(n, chars, cost, chars // CHARS_PER_TOKEN, n * _ANSWER_CHARS // CHARS_PER_TOKEN)


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def find_common_families(llm: str, rules: Rules, generated: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The families of models that more than one of generator, labeller and systems belong to, with those members."""
    members = [("generator", name) for name in sorted({row["model"] for row in generated.values()})]
    members.append(("labeller", llm))
    members += [("system", name) for name in dict.fromkeys((rules.retriever, *rules.rankers))]
    members += [("system", name) for name in (*rules.span_rankers, *rules.false_negatives)]
    members_of: dict[str, list[str]] = {}
    for role, name in members:
        for family in find_families(name):
            members_of.setdefault(family, []).append(f"{role} {name}")
    return [
        {"family": family, "members": names}
        for family, names in sorted(members_of.items())
        if len({name.partition(" ")[0] for name in names}) > 1
    ]
