"""A test set of the documents of a corpus: a language model writes the queries, in AIR-Bench's steps or PosIR's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

import orjson

from rusbeir import __version__
from rusbeir.jobs import (
    CORPUS,
    JOURNAL,
    WORK,
    Asker,
    Journal,
    LlmJob,
    TaskQueue,
    Tell,
    ask_for_prices,
    count_answers,
    digest_prompts,
    hold_folder,
    list_missing_prices,
    run_to_end,
    tell_prompt_language,
)
from rusbeir.storage import atomic_file
from rusbeir.synthesis.queries.draft_journal import Drafts
from rusbeir.synthesis.queries.drafts import STEPS
from rusbeir.synthesis.queries.estimates import refuse_small_budget
from rusbeir.synthesis.queries.questions import PROMPTS, TEMPERATURE
from rusbeir.synthesis.queries.request import QueriesRequest, make_order, split_request
from rusbeir.synthesis.queries.writing import MadeSet
from rusbeir.types import Dataset

REPORT = "qa/queries.json"


def make_queries(
    corpus: str | Path | Dataset,
    *,
    llm: str,
    out: str | Path,
    **request: Unpack[QueriesRequest],
) -> dict[str, Any]:
    """Let a model write n queries about documents of a corpus into the folder out, and return a report (docs/json.md).

    A query whose answers are not valid is dropped, and counted with the step and the reason. What was answered before
    is not asked for again.

    Args:
        corpus: A registered name, a path, or a dataset; its queries are not used.
        llm: The model at OPENAI_BASE_URL.
        out: The folder of the new dataset.
        **request: What is made: `kind` (qa, long-doc or position; default qa), `n` queries (100; a larger n adds some),
            about a `sample` of documents (one each by default), the `language` of a corpus without a card, the `seed`
            (0), a file of `attributes`. What it may cost: `budget_chars`, `budget_cost`, `retry_failed`, and prices
            and limits of the model, such as `input_price` and `concurrency`. Who hears of it: `progress`, `tell`.

    Returns:
        The report, also in qa/queries.json.

    Raises:
        BadInput: The corpus has no suitable documents, or out contains something else.
        BackendError: The service or a budget stopped the work or gave no answers, all that was answered being kept; or
            no query was made.

    Examples:
        >>> make_queries("news.jsonl", language="ru", llm="qwen3-30b", out="made")["queries"]  # doctest: +SKIP
        {'asked': 100, 'made': 93, 'dropped': 7}
    """
    out = Path(out)
    seed = request.get("seed", 0)
    worker = f"queries|model:{llm}|prompts:{digest_prompts(PROMPTS)}|seed:{seed}|t:{TEMPERATURE:g}"
    wish, asking = split_request(request)
    job = LlmJob.of(llm, worker, asking)
    job.refuse_unpriced()
    order = make_order(corpus, **wish)
    tag = order.source.card.language
    settings = {"kind": order.kind, "seed": str(seed), "attributes": order.attributes.signature}
    meta = {CORPUS: order.source.fingerprint, "language": tag, "asked": worker, **settings}
    tell_prompt_language(PROMPTS, tag, llm, job.tell)
    if order.drawn.total == 1:
        job.tell(f"{order.source.card.name} has one document: a system that finds anything finds it.")
    with hold_folder(out), Journal.open(out / WORK / JOURNAL, meta) as journal:
        drafts = Drafts(order=order, journal=journal, worker=worker)
        asker = job.open(journal)
        for step in drafts.steps if job.retry_failed else ():
            queue = TaskQueue(journal, step, worker)
            queue.reset([result.task.key for result in queue.results("failed")])
        run_to_end(_ask(drafts, asker, list_missing_prices(job.options), job.tell))
        made = MadeSet(drafts=drafts, model=llm, out=out, progress=job.progress)
        dropped, content = made.write()
        card = made.finish(content, settings, worker, dropped.total())
        n_answers, n_invalid = count_answers(journal, worker)
        report = {
            "version": __version__,
            "source": order.source.card.name,
            "language": tag,
            "kind": order.kind,
            "generator": worker,
            "documents": {
                "corpus": order.drawn.total,
                "unsuitable": order.drawn.unsuitable,
                "asked": len(order.drawn.doc_ids),
            },
            "queries": {"asked": order.n, "made": card["n_queries"], "dropped": dropped.total()},
            "steps": count_steps(order.kind, order.n, dropped),
        }
        with atomic_file(out / REPORT) as file:
            file.write(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
    return {
        **report,
        "out": str(out),
        **card,
        **asker.spent.describe_run(asker.retries),
        "answers": n_answers,
        "invalid_answers": n_invalid,
        "spent": asdict(asker.budget.spent),
    }


async def _ask(drafts: Drafts, asker: Asker, missing: Sequence[str], tell: Tell) -> None:
    """Take all drafts through all steps. Raises BackendError where questions stay without an answer."""
    order, is_announced = drafts.order, asker.is_offline

    async def ask() -> None:
        nonlocal is_announced
        for step in drafts.steps:
            pending = sum(1 for _ in drafts.open_tasks(step))
            if pending and not is_announced:
                refuse_small_budget(order, asker)
                tell(
                    f"{asker.client.endpoint} receives {len(order.drawn.doc_ids):,} documents in up to "
                    f"{order.n * len(drafts.steps):,} requests; {_describe_price(asker, missing)}"
                )
                is_announced = True
            await asker.ask(order.writer.question(step), drafts.open_tasks(step), pending)

    await asker.run(ask)


def count_steps(kind: str, n: int, dropped: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    """Count how many of n queries passed each step, and how many it dropped for which reason.

    Examples:
        >>> count_steps("position", 10, {("span", "absent"): 3})[1]
        {'step': 'span', 'made': 7, 'dropped': {'absent': 3}}
    """
    rows = []
    for step in STEPS[kind]:
        reasons = Counter({reason: count for (name, reason), count in sorted(dropped.items()) if name == step})
        n -= reasons.total()
        rows.append({"step": step, "made": n, "dropped": dict(reasons)})
    return rows


def _describe_price(asker: Asker, missing: Sequence[str]) -> str:
    price = asker.client.price
    if missing:
        return f"no price is known: {ask_for_prices(missing)}."
    return f"{price.input:g} and {price.output:g} per million tokens sent and received."
