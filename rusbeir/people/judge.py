"""A language model as a judge of translations: marked errors or four scores for each text, never paid for twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import orjson

from rusbeir import __version__
from rusbeir.audit import open_port
from rusbeir.datasets import QA, load_audited, read_jsonl
from rusbeir.errors import BadInput, option, unknown
from rusbeir.evaluation import find_families
from rusbeir.jobs import (
    CHARS_PER_TOKEN,
    Budget,
    Journal,
    LlmJob,
    LlmOptions,
    LlmRequest,
    Question,
    Spent,
    ask_all,
    bound_request,
    count_answers,
    count_shared_chars,
    describe_time,
    digest_prompts,
    estimate_seconds,
    list_missing_prices,
    read_llm_options,
    read_prompts,
)
from rusbeir.languages import english_name
from rusbeir.people import span_judge
from rusbeir.people.raters import Scale, estimate_means
from rusbeir.people.sampling import Item, draw_sample, find_digest
from rusbeir.people.span_report import report_spans
from rusbeir.storage import atomic_file
from rusbeir.types import Progress, silent

DIMENSIONS = ("accuracy", "fluency", "completeness", "style_consistency")
SCALE = (1, 2, 3, 4, 5)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **{name: {"type": "integer", "minimum": SCALE[0], "maximum": SCALE[-1]} for name in DIMENSIONS},
        "comments": {"type": "string"},
    },
    "required": [*DIMENSIONS, "comments"],
    "additionalProperties": False,
}

JOURNAL, VERDICTS = "judge.sqlite", "judge.jsonl"
JUDGE = "judge"
"""The judge's name among raters."""
KIND = "judgement"
PROMPTS = "judge"
LIKERT = "likert"
PROTOCOLS = (span_judge.ESA, span_judge.MQM, LIKERT)
"""Error spans with a score from 0 to 100, error spans alone, and four scores from 1 to 5."""
_VOTE_SEEDS = 100
"""The distance between the seeds of two votes: repeated requests use those in between."""
_MAX_TOKENS = 400
_DEFAULTS: LlmOptions = {"concurrency": 4, "timeout_seconds": 120.0}
_ANSWER_CHARS = 200
"""A usual answer: four scores with a comment, or a few errors."""
_VERDICT = {
    "item": str,
    "kind?": str,
    "id?": str,
    "digest?": str,
    "scores": ({name: {*SCALE} for name in DIMENSIONS}, None),
}

Scores: TypeAlias = Mapping[str, Mapping[str, int]]
"""item id -> question -> answer."""


def judge_port(
    folder: str | Path,
    *,
    llm: str,
    protocol: str = span_judge.ESA,
    votes: int = 1,
    n: int = 100,
    source: str | Path | None = None,
    **request: Unpack[LlmRequest],
) -> dict[str, Any]:
    """Let a language model judge a sample of a checked port.

    Marked errors are written to qa/spans.jsonl and shown on qa/spans.html, scores of `likert` to qa/judge.jsonl.
    Answers are kept in qa/judge.sqlite and not requested again. After three invalid answers a text is counted as
    invalid and left out of the means.

    Args:
        folder: The port.
        llm: The model; OPENAI_BASE_URL and OPENAI_API_KEY give the endpoint and its key.
        protocol: "esa" (error spans, and a score from 0 to 100), "mqm" (error spans alone), or "likert" (accuracy,
            fluency, completeness and style consistency from 1 to 5).
        votes: How often each text is judged, with different seeds; medians count. Only of error spans.
        n: The number of texts in the sample.
        source: Name or path of the dataset that was translated, where the port does not name it.
        **request: How the model is asked: the `seed` of the sample and of the answers, `budget_chars`, `budget_cost`
            (needs both prices), `retry_failed`, `progress`, `tell`, and prices and limits of the model, such as
            `input_price` (USD per million tokens) and `concurrency` (4 by default).

    Returns:
        The `means` by dimension, for the sample and weighted to the port, with counts and costs (docs/json.md).

    Raises:
        UnknownName: The protocol is not known.
        BadInput: The port has not been checked.
        BackendError: The endpoint fails or leaves texts without any answer, or a budget is spent.
    """
    _refuse_protocol(protocol, votes)
    seed = request.get("seed", 0)
    signature = _sign(protocol, llm, seed)
    job = LlmJob.of(llm, signature, {**_DEFAULTS, **request})
    job.refuse_unpriced(of_verb=True)
    port = open_port(folder, source=source, progress=job.progress)
    items = draw_sample(port, n, seed)
    meta = {"port": port.dataset.card.name, "from": port.languages[0], "to": port.languages[1]}
    with Journal.open(port.folder / QA / JOURNAL, meta) as journal:
        rounds = []
        for vote in range(votes):
            voter = f"{signature}|vote:{vote + 1}" if vote else signature
            vote_job = replace(job, signature=voter, seed=seed + vote * _VOTE_SEEDS)
            question = _choose_question(protocol, *port.languages, vote)
            answers = ask_all(vote_job, journal, question, items, _make_payload, "texts with their translations")
            rounds.append((answers, *count_answers(journal, voter)))
        spent = Budget(journal).spent
    by_text = list(zip(*(answers.values for answers, *_ in rounds), strict=True))
    if protocol == LIKERT:
        verdicts = {item.item_id: value for item, (value,) in zip(items, by_text, strict=True) if value is not None}
        _write_verdicts(port.folder / QA / VERDICTS, items, verdicts, signature)
        n_judged, outcome = len(verdicts), {"means": compute_means(items, verdicts)}
    else:
        n_judged, outcome = report_spans(port, items, by_text, protocol, signature, seed)
    run = Spent.sum(answers.spent for answers, *_ in rounds)
    return {
        "version": __version__,
        "port": port.dataset.card.name,
        "judge": signature,
        "protocol": protocol,
        "votes": votes,
        "n": len(items),
        "judged": n_judged,
        "invalid": len(items) - n_judged,
        "answers": sum(n_answers for _, n_answers, _ in rounds),
        "invalid_answers": sum(n_invalid for *_, n_invalid in rounds),
        **outcome,
        "shared_families": find_shared_families(llm, port.dataset.card.provenance),
        **run.describe_run(sum(answers.retries for answers, *_ in rounds)),
        "tokens": {**run.tokens, "cost": run.cost},
        "spent": asdict(spent),
    }


def _refuse_protocol(protocol: str, votes: int) -> None:
    """Raise UnknownName for another protocol, and BadInput for votes that it cannot have."""
    if protocol not in PROTOCOLS:
        raise unknown("protocol", protocol, PROTOCOLS)
    if votes < 1:
        raise BadInput(f"{option('votes', votes)} is too small. Give at least 1.")
    if votes > 1 and protocol == LIKERT:
        spans = " or ".join(str(option("protocol", name)) for name in PROTOCOLS if name != LIKERT)
        raise BadInput(f"{option('votes', votes)} is of marked errors: use {spans}, or leave it out.")


def _sign(protocol: str, llm: str, seed: int) -> str:
    if protocol == LIKERT:
        return f"judge|model:{llm}|rubric:{digest_prompts(PROMPTS)}|seed:{seed}"
    return f"judge|protocol:{protocol}|model:{llm}|rubric:{digest_prompts(span_judge.PROMPTS)}|seed:{seed}"


def _choose_question(protocol: str, source: str, target: str, vote: int = 0) -> Question:
    if protocol == LIKERT:
        return make_question(source, target)
    return span_judge.make_question(protocol, source, target, vote)


def find_shared_families(judge: str, provenance: Mapping[str, Any]) -> list[str]:
    """Find the families that a judge, by its model or signature, shares with the models that translated a port."""
    makers = [find_families(str(row.get("signature", ""))) for row in provenance.get("translators", [])]
    return sorted(find_families(judge).intersection(frozenset[str]().union(*makers)))


def _write_verdicts(
    path: Path, items: Sequence[Item], verdicts: Mapping[str, Mapping[str, Any]], signature: str
) -> None:
    with atomic_file(path) as file:
        for item in items:
            row: dict[str, Any] = {"item": item.item_id, "kind": item.kind, "id": item.record_id, "digest": item.digest}
            row |= {"weight": item.weight, "judge": signature, "scores": verdicts.get(item.item_id)}
            file.write(orjson.dumps(row) + b"\n")


def estimate_judgements(
    folder: str | Path,
    *,
    protocol: str = span_judge.ESA,
    votes: int = 1,
    n: int = 100,
    seed: int = 0,
    source: str | Path | None = None,
    progress: Progress = silent,
    **options: Unpack[LlmOptions],
) -> dict[str, Any]:
    """Estimate what judge_port with the same arguments would ask; nothing is sent, no credentials are needed."""
    _refuse_protocol(protocol, votes)
    options = {**_DEFAULTS, **options}
    price, limits = read_llm_options(options)
    port = open_port(folder, source=source, progress=progress)
    question = _choose_question(protocol, *port.languages)
    payloads = {_make_payload(item) for item in draw_sample(port, n, seed)}
    bounds = [bound_request(question, question.write(payload), price) for payload in payloads] * votes
    sent = sum(chars for chars, _ in bounds) // CHARS_PER_TOKEN
    received = len(bounds) * _ANSWER_CHARS // CHARS_PER_TOKEN
    prompt = count_shared_chars(question, sorted(payloads)) // CHARS_PER_TOKEN
    return {
        "port": port.dataset.card.name,
        "requests": len(bounds),
        "input_tokens": sent,
        "output_tokens": received,
        "cost": price.of(sent, received),
        **price.compare(len(bounds), sent, received, prompt)._asdict(),
        "cost_at_most": sum(cost for _, cost in bounds),
        "seconds": estimate_seconds(len(bounds), received, limits),
        "missing_options": list_missing_prices(options),
        "assumption": describe_time(limits, of_verb=True),
    }


def _make_payload(item: Item) -> str:
    return orjson.dumps([item.source, item.translation]).decode()


def compute_means(items: Sequence[Item], verdicts: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The mean of each dimension and of all four, over the sample and weighted to the proportions of the port.

    interval is that of the weighted mean; None where a single text was judged.
    """
    judged = [item.item_id for item in items if item.item_id in verdicts]
    if not judged:
        return {}
    scores = {name: {item: float(verdicts[item][name]) for item in judged} for name in DIMENSIONS}
    scores["overall"] = {item: sum(scores[name][item] for name in DIMENSIONS) / len(DIMENSIONS) for item in judged}
    scale = Scale(SCALE[0], SCALE[-1])
    return {name: estimate_means(items, of_items, scale) for name, of_items in scores.items()}


def read_verdicts(folder: Path) -> tuple[Scores, int]:
    """Read the scores of `rusbeir audit judge` by item, and how many more are of texts that have changed since.

    Texts without a verdict are left out. A folder that was not judged has no scores.
    """
    path = folder / QA / VERDICTS
    if not path.exists():
        return {}, 0
    again = "Run `rusbeir audit judge` again; answers that it has are not paid for twice."
    rows = [row for row in read_jsonl(path, _VERDICT, again) if row["scores"]]
    if not rows:
        return {}, 0
    dataset = load_audited(folder).dataset
    current = [row for row in rows if row.get("digest") == find_digest(dataset, row)]
    scores = {row["item"]: {name: row["scores"][name] for name in DIMENSIONS} for row in current}
    return scores, len(rows) - len(current)


def read_verdict(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """The scores in an answer; None where one is missing or is not an integer from 1 to 5.

    >>> read_verdict({"accuracy": 5, "fluency": 4, "completeness": 5, "style_consistency": 6}) is None
    True
    """
    scores = {name: answer.get(name) for name in DIMENSIONS}
    # True would count as an integer, and 5.0 is not one.
    if not all(type(score) is int and score in SCALE for score in scores.values()):
        return None
    comments = answer.get("comments", "")
    return {**scores, "comments": comments if isinstance(comments, str) else ""}


def make_question(source: str, target: str) -> Question:
    """The question about a pair of a text and its translation, in these languages (BCP 47)."""
    return Question(
        kind=KIND,
        write=lambda payload: make_prompt(source, target, *orjson.loads(payload)),
        read=lambda payload, answer: read_verdict(answer),
        schema=SCHEMA,
        max_tokens=_MAX_TOKENS,
    )


def describe_dimensions() -> dict[str, str]:
    """The question that each dimension asks, in one sentence."""
    table: dict[str, str] = read_prompts(PROMPTS)["dimensions"]
    return {name: table[name] for name in DIMENSIONS}


def make_prompt(source: str, target: str, text: str, translation: str) -> list[dict[str, str]]:
    """The messages that ask a model to score a translation; source and target are BCP 47."""
    table = read_prompts(PROMPTS)
    names = {"source": english_name(source), "target": english_name(target)}
    rubric = "\n".join(f"- {name}: {asks}" for name, asks in describe_dimensions().items())
    return [
        {"role": "system", "content": table["system"].format(rubric=rubric, **names)},
        {"role": "user", "content": table["user"].format(text=text, translation=translation, **names)},
    ]
