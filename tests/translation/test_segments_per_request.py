"""Several segments in one request: what is missing, merged or swapped is found and asked alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from benchmarks import kills
from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import Budget, Journal, Meter, Throttle, read_prompts
from rusbeir.translation import estimate_port
from rusbeir.translation.backends.llm_groups import SCHEMA, Item, find_faults, read_items
from rusbeir.translation.porting.api import port
from rusbeir.translation.porting.plan import Plan, TranslatorEntry
from rusbeir.translation.porting.runner import Runner
from rusbeir.translation.translator import Capacity, Failure, Outcome, Segment
from rusbeir.types import silent
from tests.support.batch_server import BatchServer
from tests.support.openai_server import Endpoint, Reply, completion
from tests.support.small_port import LIMITS, Fake, translated, write_source

TEXTS = [
    "Hares rest by day in a shallow hollow called a form.",
    "Water boils at 100 degrees at the level of the sea.",
    "Wolves hunt in packs and can follow a bear for days.",
    "Snow falls on the mountain long before it falls here.",
]
RUSSIAN = [
    "Днём зайцы отдыхают в неглубокой ямке, которую зовут лёжкой.",
    "На уровне моря вода закипает при температуре 100 градусов.",
    "Волки охотятся стаями и могут по многу дней преследовать медведя.",
    "На горе снег выпадает задолго до того, как он выпадет здесь.",
]
WHOLE = {number: Item(text[:12], answer) for number, (text, answer) in enumerate(zip(TEXTS, RUSSIAN, strict=True), 1)}


@pytest.mark.parametrize(
    ("why", "changes", "faulty"),
    [
        ("all fit", {}, []),
        ("punctuation and case of the copy do not matter", {1: Item("hares, REST", RUSSIAN[0])}, []),
        ("missing, and two may have become one", {2: None}, [1, 2, 3]),
        ("merged under the first number", {3: Item("Wolves hunt", f"{RUSSIAN[2]} {RUSSIAN[3]}"), 4: None}, [3, 4]),
        ("merged, and said twice", {4: Item("Snow falls", RUSSIAN[2])}, [3, 4]),
        ("merged, and cut from the other",
         {3: Item("Wolves", f"{RUSSIAN[2]} {RUSSIAN[3]} Да."), 4: Item("Snow", "Да.")}, [3, 4]),
        ("swapped with the first words", {1: WHOLE[3], 3: WHOLE[1]}, [1, 3]),
        ("a number of another text", {1: Item("Hares rest", RUSSIAN[1]), 2: Item("Water boils", RUSSIAN[0])}, [1, 2]),
        ("a mark that the text does not have", {1: Item("Hares rest", f'{RUSSIAN[0]} <x id="0"/>')}, [1]),
        ("no first words", {1: Item("", RUSSIAN[0])}, [1]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_found(why, changes, faulty):
    items = {number: item for number, item in {**WHOLE, **changes}.items() if item is not None}
    assert sorted(find_faults(TEXTS, items, "en", "ru")) == faulty, why


def test_numbers_that_are_said_twice_or_are_not_numbers():
    rows = [{"number": 1, "begins": "a", "translation": "б"}, {"number": "2", "begins": "a", "translation": "б"}]
    assert list(read_items(json.dumps({"translations": [*rows, None, 3]}))) == [1]
    assert read_items(json.dumps({"translations": [*rows, rows[0]]})) == {}
    assert read_items('{"translations": {"number": 1}}') == read_items("No.") == {}


def translate(body: dict[str, Any]) -> Reply:
    """The texts in Russian; of several, each kind of fault once."""
    system, user = (message["content"] for message in body["messages"])
    if "JSON list" not in system:
        return completion(json.dumps({"translation": translated(user)}), tokens=(300 + len(user), len(user)))
    texts = json.loads(user)
    rows = [
        {"number": row["number"], "begins": " ".join(row["text"].split()[:3]), "translation": translated(row["text"])}
        for row in texts
    ]
    if any("Bear" in row["text"] for row in texts):
        rows[0]["translation"], rows[1]["translation"] = rows[1]["translation"], rows[0]["translation"]
        rows[0]["begins"], rows[1]["begins"] = rows[1]["begins"], rows[0]["begins"]
    if any("Rain" in row["text"] for row in texts):
        rows.pop()
    return completion(json.dumps({"translations": rows}), tokens=(300 + len(user), len(user)))


class Translating(Endpoint):
    def reply(self, asked: dict[str, Any]) -> Reply:
        return translate(asked)


def test_a_port_of_several_segments_a_request(tmp_path, serve, monkeypatch):
    """The same bytes as one by one, live and in batches, with fewer requests."""
    source = write_source(tmp_path / "small")
    order = {"to": "ru", "translator": "llm", "llm": "tiny", "split": "test", "first_wait_seconds": 0.01}
    model = serve(Translating())
    alone = port(source, out=tmp_path / "alone", **order)
    n_alone = len(model.asked)
    assert alone["spent"]["requests"] == n_alone == alone["segments"]
    model.asked.clear()
    together = port(source, out=tmp_path / "together", segments_per_request=4, **order)
    groups = [asked for asked in model.asked if "JSON list" in asked["messages"][0]["content"]]
    assert together["translated"] == alone["translated"]
    assert together["spent"]["requests"] == len(model.asked) < n_alone
    assert len({asked["messages"][0]["content"] for asked in groups}) == 1  # What comes first is in providers' caches.
    assert all(asked["response_format"]["json_schema"]["schema"] == SCHEMA for asked in groups)
    with BatchServer(translate) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        batched = port(source, out=tmp_path / "batched", segments_per_request=4, batch=0.5, **order)
        assert set(provider.paid.values()) == {1}
    assert batched["spent"]["requests"] == together["spent"]["requests"]
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        texts = {(tmp_path / folder / name).read_bytes() for folder in ("alone", "together", "batched")}
        assert len(texts) == 1
    assert kills.content(tmp_path / "together") == kills.content(tmp_path / "batched")


def test_it_is_in_the_signature(tmp_path, serve):
    source = write_source(tmp_path / "small")
    serve(Translating())
    report = port(source, to="ru", translator="llm", llm="tiny", out=tmp_path / "out", segments_per_request=4)
    assert "|together:4-" in report["translators"][0]
    again = port(source, to="ru", translator="llm", llm="tiny", out=tmp_path / "out", segments_per_request=3)
    assert again["requests"] > 0


def test_the_estimate_counts_the_prompt_once_a_request(tmp_path):
    source = write_source(tmp_path / "small")
    order = {"to": "ru", "translator": "llm", "llm": "tiny"}
    (alone,), (together,) = (estimate_port(source, **order, **more) for more in ({}, {"segments_per_request": 4}))
    assert together.requests == -(-alone.requests // 4)
    assert together.input_tokens < alone.input_tokens


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segments_per_request": 0}, "segments_per_request=0 is not a number of segments"),
        ({"segments_per_request": "x"}, "segments_per_request=x is not a number of segments"),
        ({"segments_per_request": 2, "context": 1}, "context=1 and segments_per_request=2 contradict each other"),
        ({"input_price": "abc"}, "The option 'input_price' is 'abc': it must be a number from 0"),
        ({"concurrency": "x"}, "concurrency is x: it must be a whole number"),
        ({"timeout_seconds": "x"}, "timeout_seconds is x: it must be a number above 0"),
        ({"first_wait_seconds": "x"}, "The waits are x to 120.0 seconds"),
    ],
)
@pytest.mark.parametrize(
    ("work", "files"),
    [(port, {"out": "o"}), (port, {"out": "o", "batch_out": "requests.jsonl"}), (estimate_port, {})],
    ids=["live", "offline", "estimate"],
)
def test_options_that_cannot_be(tmp_path, serve, options, message, work, files):
    serve(Translating())
    paths = {name: tmp_path / file for name, file in files.items()}
    with pytest.raises(BadInput, match=message):
        work(write_source(tmp_path / "s"), to="ru", translator="llm", llm="tiny", **paths, **options)


def test_a_request_asks_for_no_longer_answer_than_the_longest_text_does(tmp_path, serve):
    """Eight texts of 1,325 characters: four have the 4,000 of the longest text, which may take 3 * 4,000 + 2,048."""
    text = ("Hares rest by day in a hollow. " * 43)[:1_325]
    docs = [{"_id": f"d{i}", "title": "", "text": f"{i}{text[1:]}"} for i in range(8)]
    source = write_source(tmp_path / "long", docs)
    model = serve(Translating())
    order = {"to": "ru", "translator": "llm", "llm": "tiny", "fields": ["text"], "segments_per_request": 8}
    assert [row.requests for row in estimate_port(source, **order)] == [2]
    port(source, out=tmp_path / "out", keep_untranslated=True, **order)
    groups = [asked for asked in model.asked if "JSON list" in asked["messages"][0]["content"]]
    assert [len(json.loads(asked["messages"][-1]["content"])) for asked in groups] == [4, 4]
    assert {asked["max_tokens"] for asked in groups} == {14_048}


@dataclass(kw_only=True)
class Judging(Fake):
    """It fails one text of a group, and goes down when that is asked alone."""

    capacity: Capacity = field(default_factory=lambda: Capacity(max_items=4, mask="tag"))
    alone: Callable[[], int]
    """The number of texts that are pending."""
    pending_alone: list[int] = field(default_factory=list)

    def judge(self, segment: Segment) -> Failure | None:
        return None

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        if len(texts) == 1:
            self.pending_alone.append(self.alone())
            raise BackendError("The quota is used up.")
        return [Failure("malformed", "", True) if "Bear" in text else translated(text) for text in texts]


@pytest.mark.parametrize(("keeps_together", "pending"), [(True, 4), (False, 1)])
def test_what_is_recorded_of_a_group_that_is_stopped(tmp_path, keeps_together, pending):
    """In batches nothing, so that the next run asks for the same groups; else what is paid, before more is asked."""
    texts = ["Water boils here.", "Bear falls here.", "Snow melts here.", "Rain falls here."]
    with Journal.open(tmp_path / "j.sqlite", {"name": "group"}) as journal:
        translator = Judging(alone=lambda: step.queue(journal).size().pending)
        plan = Plan(language="en", glossary=None, entries=(TranslatorEntry.of(translator),))
        (step,) = plan.steps
        journal.add(plan.tasks(texts, step))
        runner = Runner(
            translator=translator, source="en", target="ru", journal=journal, glossary=None, progress=silent,
            throttle=Throttle(LIMITS), meter=Meter(budget=Budget(journal)), keeps_together=keeps_together,
        )  # fmt: skip
        with pytest.raises(BackendError, match="quota"):
            asyncio.run(runner.run(step, step.queue(journal).size()))
        assert step.queue(journal).size().pending == pending
        assert translator.pending_alone == [pending]


def test_the_prompt_is_a_format():
    """Braces of its JSON are doubled in the file."""
    prompt = read_prompts("translate")["together"].format(source="English", target="Russian")
    assert '{"translations": [{"number": 1,' in prompt
