"""A judge's relevance labels against those of people: agreement on pairs, and on the order of systems.

The order of systems usually agrees well where single labels agree badly, so both are computed. Systems that are far
apart flatter a judge, and so does a system that uses it or has the same ancestors (docs/judges.md): the better half of
the systems is also ordered on its own, and systems of the judge's family are left out of the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rusbeir.errors import BadInput, option
from rusbeir.evaluation import (
    MIN_SYSTEMS,
    Figure,
    Floats,
    Sides,
    Units,
    cluster_queries,
    compare_orders,
    evaluate,
    find_families,
)
from rusbeir.evaluation import label_agreement as agreement
from rusbeir.types import Qrels, Run

MAX_LABEL = 10
"""The highest label that a scale may have."""
MAX_CLIPPED = 0.01
"""The share of a judge's labels that may be above people's scale: a few are slips of the model, many another scale."""


@dataclass(frozen=True, kw_only=True)
class JudgedSystem:
    """A system's mean by the labels of people and by those of the judge, over the topics that both have."""

    system: str
    people: float
    judge: float
    families: tuple[str, ...]
    """Families of models that the system shares with the judge or the generator: it is left out of the order."""


@dataclass(frozen=True, kw_only=True)
class Orders:
    """The agreement between a judge's order of systems and people's."""

    n_systems: int
    kendall: Figure
    tau_ap: Figure
    """The correlation with people's order as the true one."""


@dataclass(frozen=True, kw_only=True)
class JudgeAgreement:
    """Labels of a judge and of people on the same pairs."""

    n_pairs: int
    n_topics: int
    n_clusters: int
    """The independent units among the topics, which resamples draw whole: topics with the same relevant documents, by
    people's labels, are not independent."""
    only_people: int
    """Pairs that the judge has not labelled; they are left out."""
    only_judge: int
    n_clipped: int
    """Labels of the judge above people's highest, which count as that, as in LLMJudge's published table."""
    labels: tuple[int, ...]
    confusion: tuple[tuple[int, ...], ...]
    """People's labels are rows, the judge's columns."""
    figures: dict[str, Figure]
    """kappa, quadratic_kappa, `kappa >= t` for each threshold, alpha, strictness; intervals resample topics."""
    mean: agreement.PoweredMean
    """People's mean label over all pairs that the judge has labelled."""
    systems: tuple[JudgedSystem, ...]
    """The best by people's labels first."""
    order: Orders | None
    """The orders of systems that share no family with judge or generator; None where they are fewer than four."""
    upper_half: Orders | None
    """The orders of the better half of those."""
    shared_families: tuple[str, ...] = ()
    """Families of models that the judge shares with the generator: it judges what its own kind has written."""

    @property
    def conclusion(self) -> tuple[str, ...]:
        """The conclusions, in sentences."""
        kappa, mean = self.figures["kappa"], self.mean
        independent = f", {self.n_clusters:,} independent," if self.n_clusters < self.n_topics else ""
        lines = [
            f"On {self.n_pairs:,} pairs of {self.n_topics:,} topics{independent} people and the judge agree "
            f"with kappa {kappa}.",
        ]
        if self.n_clipped:
            labels = "1 label of the judge is" if self.n_clipped == 1 else f"{self.n_clipped:,} labels of the judge are"
            lines.append(f"{labels} above the scale and counted as {self.labels[-1]}, its highest.")
        if mean.n_labelled < mean.n_pairs:
            low, high = mean.interval
            lines += [
                f"People's mean label over {mean.n_pairs:,} pairs, from {mean.n_labelled:,} of their labels and all of "
                f"the judge's, is {mean.mean:.3f} ({low:.3f} to {high:.3f}).",
                f"With the judge a label of people is worth {mean.worth:.2f} without; {mean.labels_to_halve:,} more "
                "would halve the interval.",
            ]
        for name, order in (("systems", self.order), ("better systems", self.upper_half)):
            if order:
                taus = f"Kendall's tau {order.kendall}, tau-AP {order.tau_ap}"
                lines.append(f"They order {order.n_systems} {name} with {taus}.")
        if self.shared_families:
            lines.append(f"The judge and the generator are of one family ({', '.join(self.shared_families)}).")
        lines += [
            f"{system.system} is of the judge's or the generator's family ({', '.join(system.families)}) and left "
            "out of the order."
            for system in self.systems
            if system.families
        ]
        return tuple(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "conclusion": list(self.conclusion)}


def judge_labels(
    qrels: Qrels,
    judged: Qrels,
    *,
    runs: Mapping[str, Run] | None = None,
    judge: str = "",
    generator: str = "",
    measure: str = "nDCG@10",
    labels: int | None = None,
    seed: int = 0,
) -> JudgeAgreement:
    """Compare the relevance labels of a judge with those of people.

    Args:
        qrels: The labels of people.
        judged: The labels of the judge. A few above people's highest count as that.
        runs: System -> its run; both sets of labels put these systems in order.
        judge: The judge's model: systems of its family are left out of the order.
        generator: The model that wrote the queries; its family is left out as well.
        measure: The measure that orders systems.
        labels: Draw that many of people's labels for the mean, to see what so many say.
        seed: Seeds the resamples and the draw of labels.

    Returns:
        The agreement on pairs, the mean label, and how far both order the systems alike.

    Raises:
        BadInput: Labels are below 0, too many of the judge's are above people's highest, or fewer than two pairs are
            common.

    Examples:
        >>> judge_labels(read_qrels("people.qrels"), read_qrels("judge.qrels")).conclusion  # doctest: +SKIP
    """
    size = 1 + max((grade for grades in qrels.values() for grade in grades.values()), default=0)
    _refuse_outside("people", qrels, min(size, MAX_LABEL + 1))
    judged, n_clipped = _clip(judged, size)
    topics = _find_common(qrels, judged)
    n_pairs = sum(map(len, topics.values()))
    by_topic = _count_confusions(qrels, judged, topics, size)
    confusion = by_topic.sum(axis=0)
    units = Units.from_clusters(list(topics), cluster_queries(qrels))
    systems, scores = _score(
        qrels, judged, topics, runs or {}, find_families(judge) | find_families(generator), measure
    )
    able = [index for index, system in enumerate(systems) if not system.families]
    return JudgeAgreement(
        n_pairs=n_pairs,
        n_topics=len(topics),
        n_clusters=units.n_clusters,
        only_people=_count(qrels) - n_pairs,
        only_judge=_count(judged) - n_pairs,
        n_clipped=n_clipped,
        labels=tuple(range(size)),
        confusion=tuple(tuple(int(cell) for cell in row) for row in confusion),
        figures=agreement.measure(units.sum(by_topic.reshape(len(topics), -1).T).T.reshape(-1, size, size), seed=seed),
        mean=_estimate(qrels, judged, labels, seed),
        systems=tuple(systems),
        order=_order(scores[:, able], units, seed),
        upper_half=_order(scores[:, able[: (len(able) + 1) // 2]], units, seed),
        shared_families=tuple(sorted(find_families(judge) & find_families(generator))),
    )


def _clip(judged: Qrels, size: int) -> tuple[Qrels, int]:
    """The judge's labels with the few above the scale lowered to its highest, and how many were above it."""
    n_clipped = sum(grade >= size for grades in judged.values() for grade in grades.values())
    if n_clipped <= MAX_CLIPPED * _count(judged):
        judged = {
            query_id: {doc_id: min(grade, size - 1) for doc_id, grade in grades.items()}
            for query_id, grades in judged.items()
        }
    _refuse_outside("the judge", judged, size, f" So are {n_clipped:,} of {_count(judged):,} labels." * (n_clipped > 1))
    return judged, n_clipped


def _find_common(qrels: Qrels, judged: Qrels) -> dict[str, list[str]]:
    """The documents of each topic that both have labelled; topics without any are left out."""
    topics = {
        query_id: doc_ids
        for query_id, grades in qrels.items()
        if (doc_ids := [doc_id for doc_id in grades if doc_id in judged.get(query_id, {})])
    }
    if sum(map(len, topics.values())) < 2:
        raise BadInput("People and the judge have no two pairs of query and document in common. Are the ids the same?")
    return topics


def _count_confusions(qrels: Qrels, judged: Qrels, topics: Mapping[str, Sequence[str]], size: int) -> Floats:
    """A confusion matrix for each topic, float64 [topics, size, size]."""
    matrices = []
    for query_id, doc_ids in topics.items():
        people, model = (np.array([labels[query_id][doc_id] for doc_id in doc_ids]) for labels in (qrels, judged))
        matrices.append(agreement.count_confusion(people, model, size))
    return np.array(matrices)


def _refuse_outside(labeller: str, labels: Qrels, size: int, more: str = "") -> None:
    for query_id, grades in labels.items():
        for doc_id, grade in grades.items():
            if not 0 <= grade < size:
                raise BadInput(
                    f"The label {grade} of {labeller} for query {query_id} and document {doc_id} is outside the scale "
                    f"from 0 to {size - 1} (people's highest label, and at most {MAX_LABEL}).{more} Correct it or "
                    "leave it out."
                )


def _estimate(qrels: Qrels, judged: Qrels, n_labels: int | None, seed: int) -> agreement.PoweredMean:
    """People's mean label over the judge's pairs, from all of their labels or from that many of them."""
    labels: list[int] = []
    people: dict[int, float] = {}
    for query_id, grades in judged.items():
        for doc_id, grade in grades.items():
            if doc_id in qrels.get(query_id, {}):
                people[len(labels)] = float(qrels[query_id][doc_id])
            labels.append(grade)
    if n_labels is not None:
        if not 2 <= n_labels <= len(people):
            raise BadInput(
                f"{option('labels')} is {n_labels}; people have labelled {len(people):,} of the judge's pairs."
            )
        chosen = np.random.default_rng(seed).choice(list(people), n_labels, replace=False)
        people = {int(index): people[int(index)] for index in chosen}
    return agreement.estimate_mean(people, np.array(labels, dtype=np.float64))


def _score(
    qrels: Qrels,
    judged: Qrels,
    topics: Mapping[str, Sequence[str]],
    runs: Mapping[str, Run],
    family: frozenset[str],
    measure: str,
) -> tuple[list[JudgedSystem], Floats]:
    """The systems, and their scores of each topic by people's and by the judge's labels, float64 [2, systems, topics].

    Both sets of labels are taken on the pairs that both have.
    """
    sets = [
        {query_id: {doc_id: labels[query_id][doc_id] for doc_id in doc_ids} for query_id, doc_ids in topics.items()}
        for labels in (qrels, judged)
    ]
    scores = np.zeros((2, len(runs), len(topics)))
    for index, run in enumerate(runs.values()):
        for side, labels in enumerate(sets):
            result = evaluate(labels, run, [measure])
            scores[side, index] = [next(iter(result.per_query[query_id].values())) for query_id in topics]
    systems = [
        JudgedSystem(
            system=name,
            people=float(by_people),
            judge=float(by_judge),
            families=tuple(sorted(family & find_families(name))),
        )
        for name, by_people, by_judge in zip(runs, *scores.mean(axis=2), strict=True)
    ]
    order = sorted(range(len(systems)), key=lambda index: -systems[index].people)
    return [systems[index] for index in order], scores[:, order]


def _order(scores: Floats, units: Units, seed: int) -> Orders | None:
    """Compare how the two sets of labels order these systems; None for fewer than four."""
    n_systems = scores.shape[1]
    if n_systems < MIN_SYSTEMS:
        return None
    sides = Sides(scores=(scores[0], scores[1]), units=(units, units), same_queries=True)
    return Orders(
        n_systems=n_systems,
        **compare_orders(sides.means, queries=sides.resample(seed=seed)),
    )


def _count(labels: Qrels) -> int:
    return sum(map(len, labels.values()))
