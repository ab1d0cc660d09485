"""A runner of batch files, as vLLM's `run-batch` is one, and a model that adds numbers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rusbeir.jobs import Answers, Budget, Journal, LlmJob, Question, ask_all
from tests.support.openai_server import Endpoint, Reply, completion, refusal

QUESTION = Question(
    kind="sum",
    write=lambda payload: [{"role": "user", "content": payload}],
    read=lambda payload, answer: answer["sum"] if type(answer.get("sum")) is int else None,
    schema={"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
    max_tokens=10,
)


def add(body: Mapping[str, Any]) -> Reply:
    """The model's answer, the same at each asking.

    It needs a second seed for sums of "odd", answers no seed for "never", refuses "refuse", and takes no "long".
    """
    text, seed = body["messages"][0]["content"], body.get("seed", 0)
    total = sum(int(word) for word in text.split() if word.isdigit())
    tokens = (len(text) + 16, 5)
    if "long" in text:
        return refusal(400, "maximum context length exceeded", code="context_length_exceeded")
    if "refuse" in text:
        return completion("", refusal="I cannot help with sums.", tokens=tokens)
    if "never" in text or ("odd" in text and seed % 2 == 0):
        return completion("No.", tokens=tokens)
    return completion(json.dumps({"sum": total}), tokens=tokens)


class Adder(Endpoint):
    """The same model at an endpoint."""

    def reply(self, asked: dict[str, Any]) -> Reply:
        return add(asked)


def answer_line(custom_id: str, reply: Reply) -> dict[str, Any]:
    """A line of an output or error file, as OpenAI documents it."""
    response = {"status_code": reply.status, "request_id": f"req-{custom_id}", "body": json.loads(reply.body)}
    return {"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": response, "error": None}


def answer_file(
    requests: Path, answers: Path, reply: Callable[[Mapping[str, Any]], Reply] = add, *, seed: int | None = None
) -> Sequence[dict[str, Any]]:
    """Answer each line of a file, in another order where a seed is given; the requests."""
    rows = [json.loads(line) for line in requests.read_text(encoding="utf-8").splitlines()]
    lines = [json.dumps(answer_line(row["custom_id"], reply(row["body"]))) + "\n" for row in rows]
    if seed is not None:
        random.Random(seed).shuffle(lines)
    answers.write_text("".join(lines), encoding="utf-8")
    return rows


def ask_sums(journal: Path, payloads: Sequence[str], **request: Any) -> tuple[Answers, Any]:
    """The model's answers about the payloads, and what the journal says was spent."""
    order = {"concurrency": 4, "input_price": 1.0, "output_price": 2.0, "retries": 1, **request}
    order = {"first_wait_seconds": 0.0, "max_wait_seconds": 0.01, **order}
    job = LlmJob.of("tiny", "adder", order)  # type: ignore[arg-type]
    with Journal.open(journal, {"name": "sums"}) as opened:
        answers = ask_all(job, opened, QUESTION, payloads, str, "sums")
        return answers, Budget(opened).spent
