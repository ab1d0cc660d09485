"""One port from its journal to its dataset: cut the texts, translate what is pending, write; at any point gone on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from rusbeir import __version__
from rusbeir.errors import BackendError
from rusbeir.jobs import Budget, Journal, Size, Task
from rusbeir.storage import atomic_file
from rusbeir.translation.port import output
from rusbeir.translation.port.fields import Material
from rusbeir.translation.port.folder import LAYOUT, apply_cuts, encode_cut, read_cuts
from rusbeir.translation.port.output import ported_card
from rusbeir.translation.port.plan import CascadeStep, Plan
from rusbeir.translation.port.runner import Runner
from rusbeir.translation.tm.pairs import write_pairs
from rusbeir.translation.translator import Closes
from rusbeir.types import Card, Progress

T = TypeVar("T")

PROGRESS_EVERY = 1000

Report: TypeAlias = dict[str, Any]
"""What came of a port: see docs/port.md."""
Tell: TypeAlias = Callable[[str], None]
"""Called with a line that a person should read before something is sent."""


class Incomplete(BackendError):
    """Some texts have no translation, and no dataset was written. report says the rest."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


@dataclass(frozen=True, kw_only=True)
class PortJob:
    """One port, with its journal open."""

    material: Material
    source: Card
    source_fingerprint: str
    """Of the whole dataset, as the card is, where the material is a sample."""
    target: str
    plan: Plan
    settings: Mapping[str, str]
    out: Path
    journal: Journal
    budget: Budget
    progress: Progress
    tell: Tell

    def run(self, *, retry_failed: bool, keep_untranslated: bool, export: Path | None) -> Report:
        """Go on until everything is translated and written. Raises as port does."""
        if retry_failed:
            self.plan.reset_missing(self.journal)
        self._cut()
        counts = run_to_end(
            translate_pending(
                self.plan,
                self.journal,
                source=self.source.language,
                target=self.target,
                budget=self.budget,
                progress=self.progress,
                tell=self.tell,
            )
        )
        found = output.summary(self.journal, self.plan, keep_untranslated=keep_untranslated)
        output.write_quality(self.out, self.journal, self.plan, found)
        report: Report = {
            "dataset": self.source.name,
            "out": str(self.out),
            "from": self.source.language,
            "to": self.target,
            "split": self.source.split,
            "translators": [entry.signature for entry in self.plan.entries],
            **{name: found[name] for name in ("segments", "translated", "kept", "missing", "flagged")},
            "passes": found["passes"],
            **counts,
            "spent": {"chars": self.budget.spent_chars, "cost": self.budget.spent_cost},
        }
        if export is not None:
            pairs = output.aligned_pairs(self.journal, self.plan)
            report["exported"] = write_pairs(export, pairs, self.source.language, self.target)
        if found["missing"]:
            raise Incomplete(self._what_is_missing(found), report)
        return {**report, **self._publish(found)}

    def _cut(self) -> None:
        """Put the units of all texts into the journal, once, and note beside it how each text was cut."""
        path = self.out / LAYOUT
        if self.journal.get_meta("cut") and path.exists():
            return
        first = self.plan.steps[0]
        total = len(self.material.dataset.corpus) + len(self.material.dataset.queries)
        with atomic_file(path) as file:

            def tasks() -> Iterator[Task]:
                for n, text in enumerate(self.material.texts()):
                    if n % PROGRESS_EVERY == 0:
                        self.progress("cut texts", n, None)
                    pieces = self.plan.cut(text, first)
                    file.write(encode_cut(pieces))
                    for piece, sent in pieces:
                        if sent:
                            yield Task.of(first.kind, piece)

            self.journal.add(tasks())
        # What was handed on before was cut from other units.
        later = {f"cut {step.number}": "" for step in self.plan.steps[1:]}
        self.journal.set_meta({"cut": "yes", **later})
        self.progress("cut texts", total, total)

    def _what_is_missing(self, found: Mapping[str, Any]) -> str:
        last = found["passes"][-1]
        reasons = {**last["reasons"], **({"not asked": last["pending"]} if last["pending"] else {})}
        commonest = max(reasons, key=lambda reason: reasons[reason])
        return (
            f"{found['missing']:,} of {found['segments']:,} segments of {self.source.name} have no translation "
            f"({reasons[commonest]:,} {commonest}), so no dataset was written; see {self.out / 'qa'}. Ask for them "
            "again with --retry-failed, or another translator with --retry-failed --translator OTHER."
        )

    def _publish(self, found: Mapping[str, Any]) -> Report:
        """Write the dataset, and say what it is."""
        lengths = read_cuts(self.out / LAYOUT)

        def translate(texts: Sequence[str]) -> list[str]:
            cuts = list(apply_cuts(lengths, texts, self.out / LAYOUT))
            answers = self.plan.joined(self.journal, cuts, keep=found["kept"] > 0)
            return [self._present(answer) for answer in answers]

        card = ported_card(self.source, self.source_fingerprint, self.target, self.plan.entries, self.settings, found)
        fingerprint = output.publish(self.out, self.material, translate, card, self.progress)
        dataset = self.material.dataset
        counts = {"n_docs": len(dataset.corpus), "n_queries": len(dataset.queries)}
        return {"name": card.name, "fingerprint": fingerprint, "licence": card.licence, **counts}

    def _present(self, answer: str | None) -> str:
        if answer is None:
            raise BackendError(f"{self.journal.path} lacks answers that it had: remove {LAYOUT} beside it, and go on.")
        return answer


async def translate_pending(
    plan: Plan, journal: Journal, *, source: str, target: str, budget: Budget, progress: Progress, tell: Tell
) -> dict[str, int]:
    """Translate what is pending, step by step; how many requests were sent, and how many of them were retries."""
    runners: dict[str, Runner] = {}
    try:
        for step in plan.steps:
            _hand_on(plan, journal, step)
            translator, signature = step.entry.translator, step.entry.signature
            size = step.queue(journal).size()
            if translator is None or not size.pending:
                continue
            if signature not in runners:
                runners[signature] = Runner(
                    translator=translator,
                    source=source,
                    target=target,
                    journal=journal,
                    glossary=plan.glossary,
                    budget=budget,
                    progress=progress,
                )
            _announce(step, size, tell)
            await runners[signature].run(step)
    finally:
        for runner in runners.values():
            if isinstance(runner.translator, Closes):
                await runner.translator.close()
    return {
        "requests": sum(runner.throttle.requests for runner in runners.values()),
        "retries": sum(runner.throttle.retries for runner in runners.values()),
    }


def _hand_on(plan: Plan, journal: Journal, step: CascadeStep) -> None:
    """Cut what the pass before has not done to the size of this one, once."""
    # Another version may cut otherwise, and then looks for other units.
    name, version = f"cut {step.number}", __version__
    if step.number == 0 or journal.get_meta(name) == version:
        return
    before = plan.steps[step.number - 1].queue(journal)
    journal.add(plan.tasks((task.payload for task in before.unfinished(with_failed=True)), step))
    journal.set_meta({name: version})


def _announce(step: CascadeStep, size: Size, tell: Tell) -> None:
    """Say who receives what, before it is sent."""
    entry = step.entry
    if not entry.sends:
        return
    price = entry.translator.capacity.cost_per_million_chars if entry.translator else 0.0
    cost = price * size.pending_chars / 1e6
    about = f"about {cost:,.2f} USD" if cost >= 0.01 else "less than 0.01 USD" if cost else "no price is known"
    tell(f"{entry.name}: {entry.sends} receives {size.pending:,} texts of {size.pending_chars:,} characters; {about}.")


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns, also where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
