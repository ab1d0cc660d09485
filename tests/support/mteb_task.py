"""A dataset as a task of MTEB, and a model's scores on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rusbeir import load


def make_task(name: str, language: str, *, folder: Path | None = None) -> Any:
    """The task; language as MTEB writes it, such as rus-Cyrl. From a folder, MTEB loads it with its own code."""
    from datasets import Dataset
    from mteb.abstasks import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    found = load(name)

    class Task(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = TaskMetadata(
            name="Own",
            description="A dataset of rusbeir.",
            type="Retrieval",
            dataset={"path": str(folder or name), "revision": "local"},
            eval_langs=[language],
            eval_splits=[found.card.split],
            main_score="ndcg_at_10",
        )

        def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
            if folder is not None:
                super().load_data(num_proc=num_proc, **kwargs)
                return
            documents = [{"id": doc.doc_id, "title": doc.title, "text": doc.text} for doc in found.corpus]
            split = {
                "corpus": Dataset.from_list(documents),
                "queries": Dataset.from_list([{"id": one, "text": text} for one, text in found.queries.items()]),
                "relevant_docs": found.qrels,
                "top_ranked": None,
            }
            self.dataset = {"default": {found.card.split: split}}
            self.data_loaded = True

    return Task()


def score_task(model: Any, task: Any) -> dict[str, float]:
    """The scores of the model, by MTEB's names."""
    import mteb

    found = mteb.evaluate(model, [task], cache=None, co2_tracker=False, show_progress_bar=False)
    scores: dict[str, float] = next(iter(found.task_results[0].scores.values()))[0]
    return scores
