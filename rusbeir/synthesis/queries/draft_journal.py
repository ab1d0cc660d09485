"""Drafts and their journal: what is asked next, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rusbeir.jobs import INVALID, Journal, Task, TaskQueue
from rusbeir.synthesis.queries.drafts import INSUFFICIENT, STEPS, Draft
from rusbeir.synthesis.queries.request import Order
from rusbeir.text import batched, replace_surrogates

PAGE_DRAFTS = 500


@dataclass(frozen=True, kw_only=True)
class Drafts:
    """The drafts of a test set. Only a page of them is held in memory; what became of them lies in the journal."""

    order: Order
    journal: Journal
    worker: str

    @property
    def steps(self) -> tuple[str, ...]:
        return STEPS[self.order.kind]

    def open_tasks(self, step: str) -> Iterator[Task]:
        """Open the tasks of a step that are neither done nor failed, each once; all are in the journal then."""
        queue = TaskQueue(self.journal, step, self.worker)
        seen: set[bytes] = set()
        for page in self.pages(step):
            tasks = {
                task.key: task
                for draft in page
                if not draft.dropped and not draft.waiting
                and (task := Task.of(step, draft.payload(step))).key not in seen
            }  # fmt: skip
            seen.update(tasks)
            self.journal.add(tasks.values())
            settled = queue.outcomes([*tasks])
            yield from (task for key, task in tasks.items() if key not in settled)

    def pages(self, until: str | None = None) -> Iterator[list[Draft]]:
        """Yield the drafts in lists, with what was made of them at the steps before `until`; None takes all steps."""
        steps = self.steps[: self.steps.index(until)] if until else self.steps
        for page in batched(self.order.begin(), PAGE_DRAFTS):
            for step in steps:
                self._follow(page, step)
            yield page

    def _follow(self, page: Sequence[Draft], step: str) -> None:
        """Add to the drafts what became of a step."""
        active = [draft for draft in page if not draft.dropped and not draft.waiting]
        keys = [Task.of(step, draft.payload(step)).key for draft in active]
        queue = TaskQueue(self.journal, step, self.worker)
        outcomes = queue.outcomes(keys)
        for draft, key in zip(active, keys, strict=True):
            outcome = outcomes.get(key)
            if outcome is None:
                draft.waiting = True
            elif outcome.state == "failed":
                # What a model or a server said may have half a character, which no file can hold.
                reason, _, answer = replace_surrogates(outcome.error).partition(": ")
                draft.dropped = (step, reason.removeprefix(f"{INVALID} "), answer)
            elif (value := queue.parse(outcome.result)) is False:
                draft.dropped = (step, INSUFFICIENT, "")
            else:
                draft.made[step] = value
