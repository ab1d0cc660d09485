"""A language model as a judge of translations: four scores for each text, kept in a journal, never paid for twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from rusbeir import __version__
from rusbeir.audit import open_port
from rusbeir.datasets import QA, load_audited, read_jsonl
from rusbeir.jobs import (
    CHARS_PER_TOKEN,
    Budget,
    Journal,
    LlmJob,
    LlmOptions,
    Question,
    Tell,
    ask_all,
    bound_request,
    count_answers,
    describe_time,
    digest_prompts,
    estimate_seconds,
    list_missing_prices,
    read_llm_options,
    read_prompts,
)
from rusbeir.languages import english_name
from rusbeir.people.raters import estimate_port_mean, read_sample
from rusbeir.people.sampling import Item, draw_sample, find_digest
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
_MAX_TOKENS = 400
_TIMEOUT_SECONDS = 120.0
_ANSWER_CHARS = 200
"""A usual answer, with a comment."""
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
    n: int = 100,
    seed: int = 0,
    source: str | Path | None = None,
    budget_chars: int | None = None,
    budget_cost: float | None = None,
    input_price: float | None = None,
    output_price: float | None = None,
    concurrency: int = 4,
    retry_failed: bool = False,
    progress: Progress = silent,
    tell: Tell = lambda line: None,
) -> dict[str, Any]:
    """Let a language model score a sample of a checked port; verdicts are written to qa/judge.jsonl.

    Answers are kept in qa/judge.sqlite and not requested again. After three invalid answers a text is counted as
    invalid and left out of the means.

    Args:
        folder: The port.
        llm: The model; OPENAI_BASE_URL and OPENAI_API_KEY give the endpoint and its key.
        n: The number of texts in the sample.
        seed: Seed of the sample and of the answers.
        source: Name or path of the dataset that was translated, where the port does not name it.
        budget_chars: The most characters that may be sent.
        budget_cost: The most that it may cost, in USD; needs both prices.
        input_price: USD per million tokens sent.
        output_price: USD per million tokens received.
        concurrency: Requests at the same time.
        retry_failed: Whether texts without a valid answer are asked for again.
        progress: Receives what is being done.
        tell: Receives lines for the user, such as what is sent where.

    Returns:
        The `means` by dimension, for the sample and weighted to the port, with counts and costs (docs/json.md).

    Raises:
        BadInput: The port has not been checked.
        BackendError: The endpoint fails or leaves texts without any answer, or a budget is spent.
    """
    options = _make_options(input_price, output_price, concurrency)
    signature = f"judge|model:{llm}|rubric:{digest_prompts(PROMPTS)}|seed:{seed}"
    job = LlmJob(
        llm=llm,
        signature=signature,
        seed=seed,
        budget_chars=budget_chars,
        budget_cost=budget_cost,
        options=options,
        retry_failed=retry_failed,
        progress=progress,
        tell=tell,
    )
    job.refuse_unpriced(of_verb=True)
    port = open_port(folder, source=source, progress=progress)
    items = draw_sample(port, n, seed)
    meta = {"port": port.dataset.card.name, "from": port.languages[0], "to": port.languages[1]}
    with Journal.open(port.folder / QA / JOURNAL, meta) as journal:
        question = make_question(*port.languages)
        answers = ask_all(job, journal, question, items, _make_payload, "texts with their translations")
        n_answers, n_invalid = count_answers(journal, signature)
        spent = Budget(journal).spent
    verdicts = {item.item_id: value for item, value in zip(items, answers.values, strict=True) if value is not None}
    _write_verdicts(port.folder / QA / VERDICTS, items, verdicts, signature)
    counts = answers.spent.describe_run(answers.retries)
    return {
        "version": __version__,
        "port": port.dataset.card.name,
        "judge": signature,
        "n": len(items),
        "judged": len(verdicts),
        "invalid": len(items) - len(verdicts),
        "answers": n_answers,
        "invalid_answers": n_invalid,
        "means": compute_means(items, verdicts),
        **counts,
        "tokens": {**answers.spent.tokens, "cost": answers.spent.cost},
        "spent": asdict(spent),
    }


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
    n: int = 100,
    seed: int = 0,
    source: str | Path | None = None,
    input_price: float | None = None,
    output_price: float | None = None,
    concurrency: int = 4,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Estimate what judge_port with the same arguments would ask; nothing is sent, no credentials are needed."""
    options = _make_options(input_price, output_price, concurrency)
    price, limits = read_llm_options(options)
    port = open_port(folder, source=source, progress=progress)
    question = make_question(*port.languages)
    payloads = {_make_payload(item) for item in draw_sample(port, n, seed)}
    bounds = [bound_request(question, question.write(payload), price) for payload in payloads]
    sent = sum(chars for chars, _ in bounds) // CHARS_PER_TOKEN
    received = len(bounds) * _ANSWER_CHARS // CHARS_PER_TOKEN
    return {
        "port": port.dataset.card.name,
        "requests": len(bounds),
        "input_tokens": sent,
        "output_tokens": received,
        "cost": price.of(sent, received),
        "cost_at_most": sum(cost for _, cost in bounds),
        "seconds": estimate_seconds(len(bounds), received, limits),
        "missing_options": list_missing_prices(options),
        "assumption": describe_time(limits, of_verb=True),
    }


def _make_options(input_price: float | None, output_price: float | None, concurrency: int) -> LlmOptions:
    """The options of the model, without prices that are not known."""
    options: LlmOptions = {"concurrency": concurrency, "timeout_seconds": _TIMEOUT_SECONDS}
    if input_price is not None:
        options["input_price"] = input_price
    if output_price is not None:
        options["output_price"] = output_price
    return options


def _make_payload(item: Item) -> str:
    return orjson.dumps([item.source, item.translation]).decode()


def compute_means(items: Sequence[Item], verdicts: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The mean of each dimension and of all four, over the sample and weighted to the proportions of the port.

    interval is that of the weighted mean; None where a single text was judged.
    """
    judged = [item.item_id for item in items if item.item_id in verdicts]
    if not judged:
        return {}
    sample = read_sample({item.item_id: {"weight": item.weight, **item.stratum._asdict()} for item in items})
    scores = {name: {item: float(verdicts[item][name]) for item in judged} for name in DIMENSIONS}
    scores["overall"] = {item: sum(scores[name][item] for name in DIMENSIONS) / len(DIMENSIONS) for item in judged}
    means: dict[str, dict[str, Any]] = {}
    for name, of_items in scores.items():
        mean = sum(of_items.values()) / len(of_items)
        of_port = estimate_port_mean(of_items, sample, SCALE)
        interval = of_port.interval if of_port else None
        means[name] = {"sample": mean, "port": of_port.mean if of_port else mean, "interval": interval}
    return means


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
