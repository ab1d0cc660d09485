"""A language model as a judge of translations: four scores a text, kept in a journal, so that none is paid twice."""

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
from rusbeir.audit.sampling import Item, draw
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
from rusbeir.storage import atomic_file, data_folder
from rusbeir.translation.languages import english_name
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
"""At an answer that is no verdict, each with another seed."""
_MAX_TOKENS = 400
_CHARS_PER_TOKEN = 3
_FENCE = re.compile(r"\{.*\}", re.DOTALL)
_TIMEOUT_SECONDS = 120.0
_PROMPT_TOKENS = 400
_SHOWN_CHARS = 200


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
    """The means of a model's scores over a sample of a checked port; each verdict also in qa/judge.jsonl.

    The endpoint and its key are OPENAI_BASE_URL and OPENAI_API_KEY; prices are per million tokens. Answers are kept
    in qa/judge.sqlite and not asked for again. An answer that is no verdict is asked for again, then counted as
    invalid and left out of the means. Raises BadInput where the port was not checked, BackendError where the endpoint
    or the budget stops it.
    """
    port = open_port(folder, source=source, progress=progress)
    items = draw(port, n, seed)
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
        "means": means(items, verdicts),
        "tokens": {"input": client.usage.input_tokens, "output": client.usage.output_tokens, "cost": client.spent},
    }


def means(items: Sequence[Item], verdicts: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The mean of each dimension and over all of them: of the sample, and weighted to the port's proportions."""
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
    """The scores in an answer; None where one is missing or no integer from 1 to 5.

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
    # bool is an int, and 5.0 is none.
    if not all(type(score) is int and score in SCALE for score in scores.values()):
        return None
    comments = value.get("comments", "")
    return {**scores, "comments": comments if isinstance(comments, str) else ""}


@dataclass(kw_only=True)
class Judge:
    """One model and one journal, for one run."""

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
        """Ask for each of the tasks. What was answered before an error is kept."""
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
            self.journal.record([await self._judged(task)])
            self.done += 1
            self.progress("judge", self.done, total)

    async def _judged(self, task: Task) -> Attempt:
        """The deciding attempt; those before it are recorded already."""
        invalid = Attempt(task.key, self.signature, "failed")
        for attempt in range(ATTEMPTS):
            if attempt:
                self.journal.record([invalid._replace(state="retry")])
            try:
                answer = await self._answer(task, attempt)
            except Exhausted as error:
                # The endpoint was at fault: the next run asks again.
                return Attempt(task.key, self.signature, "retry", error=str(error))
            except Rejected as error:
                return Attempt(task.key, self.signature, "failed", error=f"{error.reason}: {error.detail}")
            verdict = read_verdict(answer.text)
            if verdict is not None:
                return Attempt(task.key, self.signature, "done", result=json.dumps(verdict))
            invalid = invalid._replace(error=f"invalid: {answer.text[:_SHOWN_CHARS]}")
        return invalid

    async def _answer(self, task: Task, attempt: int) -> Answer:
        messages = make_prompt(*self.languages, *orjson.loads(task.payload))
        cost = self.client.price.of(_PROMPT_TOKENS + len(task.payload) // _CHARS_PER_TOKEN, _MAX_TOKENS)
        self.budget.reserve(len(task.payload), cost)
        answer = await self.throttle.run(
            lambda: self.client.chat(
                messages,
                schema=SCHEMA,
                # With temperature 0 another seed would change nothing.
                temperature=0.3 if attempt else 0.0,
                seed=self.seed + attempt,
                max_tokens=_MAX_TOKENS,
            )
        )
        self.budget.correct(cost=self.client.price.of(answer.input_tokens, answer.output_tokens) - cost)
        return answer


def describe_dimensions() -> dict[str, str]:
    """Each dimension with what it asks, in one sentence."""
    table: dict[str, str] = _read_rubric()["dimensions"]
    return {name: table[name] for name in DIMENSIONS}


def make_prompt(source: str, target: str, text: str, translation: str) -> list[dict[str, str]]:
    """The messages that ask a model for its scores; source and target are BCP 47."""
    table = _read_rubric()
    names = {"source": english_name(source), "target": english_name(target)}
    rubric = "\n".join(f"- {name}: {asks}" for name, asks in describe_dimensions().items())
    return [
        {"role": "system", "content": table["system"].format(rubric=rubric, **names)},
        {"role": "user", "content": table["user"].format(text=text, translation=translation, **names)},
    ]


def rubric_digest() -> str:
    """Eight letters that change with the rubric."""
    return hashlib.blake2b(
        (data_folder("translation") / "prompts" / "judge.toml").read_bytes(), digest_size=4
    ).hexdigest()


@cache
def _read_rubric() -> dict[str, Any]:
    with (data_folder("translation") / "prompts" / "judge.toml").open("rb") as file:
        return tomllib.load(file)
