"""A language model as a judge of translations: four scores for each text, kept in a journal, never paid for twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from rusbeir import __version__
from rusbeir.audit.aligned import QA, open_port
from rusbeir.audit.sampling import Item, draw_sample
from rusbeir.jobs import (
    Answer,
    Attempt,
    Budget,
    Exhausted,
    Journal,
    Limits,
    Llm,
    Price,
    Rejected,
    Task,
    TaskQueue,
    Throttle,
)
from rusbeir.languages import english_name
from rusbeir.storage import atomic_file, data_folder
from rusbeir.translation.port.runner import Tell, run_to_end
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
KIND = "judgement"
ATTEMPTS = 3
"""Requests for one text, each with another seed, until an answer is a valid verdict."""
_MAX_TOKENS = 400
_CHARS_PER_TOKEN = 3
_FENCE = re.compile(r"\{.*\}", re.DOTALL)
_TIMEOUT_SECONDS = 120.0
_PROMPT_TOKENS = 400
_MAX_ERROR_CHARS = 200


def judge_port(
    folder: str | Path,
    *,
    llm: str,
    n: int = 100,
    seed: int = 0,
    source: str | Path | None = None,
    budget_cost: float | None = None,
    input_price: float = 0.0,
    output_price: float = 0.0,
    concurrency: int = 4,
    progress: Progress = silent,
    tell: Tell = lambda line: None,
) -> dict[str, Any]:
    """The means of a model's scores over a sample of a checked port; each verdict is also written to qa/judge.jsonl.

    OPENAI_BASE_URL and OPENAI_API_KEY give the endpoint and its key; prices are per million tokens. Answers are kept
    in qa/judge.sqlite and not requested again. After ATTEMPTS invalid answers a text is counted as invalid and left
    out of the means. Raises BadInput for a port that has not been checked, BackendError where the endpoint or the
    budget stops the work.
    """
    port = open_port(folder, source=source, progress=progress)
    items = draw_sample(port, n, seed)
    client = Llm.from_environment(llm, timeout_seconds=_TIMEOUT_SECONDS, price=Price(input_price, output_price))
    signature = f"judge|model:{llm}|rubric:{rubric_digest()}|seed:{seed}"
    path = port.folder / QA / JOURNAL
    with Journal.open(
        path, {"port": port.dataset.card.name, "from": port.languages[0], "to": port.languages[1]}
    ) as journal:
        judge = Judge(
            journal=journal,
            client=client,
            signature=signature,
            languages=port.languages,
            seed=seed,
            throttle=Throttle(Limits(concurrency=concurrency, timeout_seconds=_TIMEOUT_SECONDS)),
            budget=Budget(journal, cost=budget_cost),
            progress=progress,
        )
        tasks = {item.item_id: Task.of(KIND, orjson.dumps([item.source, item.translation]).decode()) for item in items}
        journal.add(tasks.values())
        queue = TaskQueue(journal, KIND, signature)
        settled = {result.task.key for result in queue.results("failed")}
        settled |= queue.answers([task.key for task in tasks.values()]).keys()
        left = [task for key, task in {task.key: task for task in tasks.values()}.items() if key not in settled]
        if left:
            tell(f"{client.endpoint} receives {len(left):,} texts with their translations.")
        run_to_end(judge.run(left))
        answers = queue.answers([task.key for task in tasks.values()])
        attempts = journal.read(
            "SELECT count(*), sum(error LIKE 'invalid:%') FROM attempt JOIN worker ON worker.number = attempt.worker "
            "WHERE signature = ?",
            (signature,),
        )[0]
    verdicts = {item.item_id: json.loads(answers[key]) for item in items if (key := tasks[item.item_id].key) in answers}
    with atomic_file(port.folder / QA / VERDICTS) as file:
        for item in items:
            row = {"item": item.item_id, "kind": item.kind, "id": item.record_id, "weight": item.weight}
            file.write(orjson.dumps({**row, "judge": signature, "scores": verdicts.get(item.item_id)}) + b"\n")
    return {
        "version": __version__,
        "port": port.dataset.card.name,
        "judge": signature,
        "n": len(items),
        "judged": len(verdicts),
        "invalid": len(items) - len(verdicts),
        "answers": attempts[0],
        "invalid_answers": attempts[1] or 0,
        "means": compute_means(items, verdicts),
        "tokens": {"input": client.usage.input_tokens, "output": client.usage.output_tokens, "cost": client.spent},
    }


def compute_means(items: Sequence[Item], verdicts: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The mean of each dimension and of all four, over the sample and weighted to the proportions of the port."""
    judged = [item for item in items if item.item_id in verdicts]
    if not judged:
        return {}
    found: dict[str, dict[str, float]] = {}
    for name in DIMENSIONS:
        scores = [verdicts[item.item_id][name] for item in judged]
        weights = [item.weight for item in judged]
        found[name] = {
            "sample": sum(scores) / len(scores),
            "port": sum(score * weight for score, weight in zip(scores, weights, strict=True)) / sum(weights),
        }
    overall = {of: sum(row[of] for row in found.values()) / len(found) for of in ("sample", "port")}
    return {**found, "overall": overall}


def read_verdict(answer: str) -> dict[str, Any] | None:
    """The scores in an answer; None where one is missing or is not an integer from 1 to 5.

    >>> read_verdict('{"accuracy": 5, "fluency": 4, "completeness": 5, "style_consistency": 6}') is None
    True
    """
    found = _FENCE.search(answer)
    try:
        value = json.loads(found[0], strict=False) if found else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    scores = {name: value.get(name) for name in DIMENSIONS}
    # True would count as an integer, and 5.0 is not one.
    if not all(type(score) is int and score in SCALE for score in scores.values()):
        return None
    comments = value.get("comments", "")
    return {**scores, "comments": comments if isinstance(comments, str) else ""}


@dataclass(kw_only=True)
class Judge:
    """Asks one model for verdicts, and records them in one journal; for one run."""

    journal: Journal
    client: Llm
    signature: str
    languages: tuple[str, str]
    seed: int
    throttle: Throttle
    budget: Budget
    progress: Progress
    done: int = 0

    async def run(self, tasks: Sequence[Task]) -> None:
        """Ask for a verdict on each task. What was answered before an error is kept."""
        n = self.throttle.limits.concurrency
        async with self.client:
            workers = [asyncio.create_task(self._work(tasks[i::n], len(tasks))) for i in range(n)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, tasks: Sequence[Task], total: int) -> None:
        for task in tasks:
            self.journal.record([await self._judge(task)])
            self.done += 1
            self.progress("judge", self.done, total)

    async def _judge(self, task: Task) -> Attempt:
        """The last attempt at a task; earlier ones have been recorded."""
        invalid = Attempt(task.key, self.signature, "failed")
        for attempt in range(ATTEMPTS):
            if attempt:
                self.journal.record([invalid._replace(state="retry")])
            try:
                answer = await self._ask(task, attempt)
            except Exhausted as error:
                # The endpoint failed, not the text: the next run asks again.
                return Attempt(task.key, self.signature, "retry", error=str(error))
            except Rejected as error:
                return Attempt(task.key, self.signature, "failed", error=f"{error.reason}: {error.detail}")
            verdict = read_verdict(answer.text)
            if verdict is not None:
                return Attempt(task.key, self.signature, "done", result=json.dumps(verdict))
            invalid = invalid._replace(error=f"invalid: {answer.text[:_MAX_ERROR_CHARS]}")
        return invalid

    async def _ask(self, task: Task, attempt: int) -> Answer:
        messages = make_prompt(*self.languages, *orjson.loads(task.payload))
        cost = self.client.price.of(_PROMPT_TOKENS + len(task.payload) // _CHARS_PER_TOKEN, _MAX_TOKENS)
        self.budget.reserve(len(task.payload), cost)
        answer = await self.throttle.run(
            lambda: self.client.chat(
                messages,
                schema=SCHEMA,
                # At temperature 0 another seed would change nothing.
                temperature=0.3 if attempt else 0.0,
                seed=self.seed + attempt,
                max_tokens=_MAX_TOKENS,
            )
        )
        self.budget.correct(cost=self.client.price.of(answer.input_tokens, answer.output_tokens) - cost)
        return answer


def describe_dimensions() -> dict[str, str]:
    """The question that each dimension asks, in one sentence."""
    table: dict[str, str] = _read_rubric()["dimensions"]
    return {name: table[name] for name in DIMENSIONS}


def make_prompt(source: str, target: str, text: str, translation: str) -> list[dict[str, str]]:
    """The messages that ask a model to score a translation; source and target are BCP 47."""
    table = _read_rubric()
    names = {"source": english_name(source), "target": english_name(target)}
    rubric = "\n".join(f"- {name}: {asks}" for name, asks in describe_dimensions().items())
    return [
        {"role": "system", "content": table["system"].format(rubric=rubric, **names)},
        {"role": "user", "content": table["user"].format(text=text, translation=translation, **names)},
    ]


def rubric_digest() -> str:
    """Eight hex digits that change with the rubric."""
    return hashlib.blake2b(
        (data_folder("translation") / "prompts" / "judge.toml").read_bytes(), digest_size=4
    ).hexdigest()


@cache
def _read_rubric() -> dict[str, Any]:
    with (data_folder("translation") / "prompts" / "judge.toml").open("rb") as file:
        return tomllib.load(file)
