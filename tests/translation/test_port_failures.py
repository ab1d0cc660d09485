"""What becomes of requests and texts that fail."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from rusbeir.errors import BackendError
from rusbeir.jobs import Limits, Transient
from rusbeir.translation.porting.api import port
from rusbeir.translation.porting.job import Incomplete
from rusbeir.translation.translator import Capacity, Failure
from tests.support.small_port import Fake, dataset_bytes, failing, records, translated, write_source


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path / "small")


def test_a_text_that_fails_at_first_is_asked_again(source, tmp_path):
    fake = Fake(answer=failing("empty", "Rain", "Ice", times=3))
    report = port(source, to="ru", translator=fake, out=tmp_path / "out")
    assert report["missing"] == 0
    assert max(fake.asked.values()) == 4


def test_failures_are_entries_and_nothing_is_written(source, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(Incomplete, match=r"1 of 8 segments of small have no translation \(1 refused\)") as caught:
        port(source, to="ru", translator=Fake(answer=failing("refused", "Bear", retry=False)), out=out)
    assert caught.value.report["missing"] == 1
    assert not (out / "corpus.jsonl").exists()
    assert not (out / "card.json").exists()
    assert records(out / "qa" / "failures.jsonl") == [
        {"source": "Bear 5 kg", "reason": "refused", "detail": "for Bear", "translator": "fake-1"}
    ]
    # the same command asks nothing more, --retry-failed asks for that one alone
    fake = Fake()
    with pytest.raises(Incomplete):
        port(source, to="ru", translator=fake, out=out)
    assert fake.sent == []
    report = port(source, to="ru", translator=fake, out=out, retry_failed=True)
    assert fake.sent == ["Bear [1]"]
    assert report["missing"] == 0
    assert (out / "qa" / "failures.jsonl").read_bytes() == b""


def test_another_translator_takes_what_failed(source, tmp_path):
    out = tmp_path / "out"
    first = Fake(answer=failing("refused", "Bear", "Ice", retry=False))
    with pytest.raises(Incomplete):
        port(source, to="ru", translator=first, out=out)
    other = Fake(signature="other-1", capacity=Capacity(mask="bracket", levels=("sentence",)))
    report = port(source, to="ru", translator=other, out=out, retry_failed=True)
    assert sorted(other.sent) == ["Bear [1]", "Ice melts.", "Snow falls."]
    assert report["translators"] == ["fake-1", "other-1"]
    # the command of the beginning goes on with the same port
    before = dataset_bytes(out)
    port(source, to="ru", translator=Fake(), out=out)
    assert dataset_bytes(out) == before


def test_a_chain_hands_on_what_fails(source, tmp_path):
    fakes = [
        Fake(answer=failing("no-entry", "Bear", "Ice", "River", retry=False), signature="a"),
        Fake(answer=failing("refused", "Bear", retry=False), signature="b"),
        Fake(signature="c"),
    ]
    report = port(source, to="ru", translator=fakes, out=tmp_path / "out")
    assert fakes[2].sent == ["Bear [1]"]
    assert len(fakes[1].sent) == 3
    assert [row["done"] for row in report["passes"]] == [5, 2, 1]
    assert report["segments"] == 8


def test_a_retried_chain_asks_only_for_what_is_missing(source, tmp_path):
    def fakes(*words: str) -> list[Fake]:
        return [
            Fake(answer=failing("timeout", "Bear", "Ice", retry=False), signature="a"),
            Fake(answer=failing("refused", *words, retry=False) if words else Fake().answer, signature="b"),
        ]

    with pytest.raises(Incomplete):
        port(source, to="ru", translator=fakes("Bear"), out=tmp_path / "out")
    again = fakes()
    port(source, to="ru", translator=again, out=tmp_path / "out", retry_failed=True)
    assert [fake.sent for fake in again] == [["Bear [1]"], ["Bear [1]"]]


def test_a_request_that_fails_as_a_whole_is_asked_one_by_one(source, tmp_path):
    class Whole(Fake):
        async def translate(self, texts, source, target):
            self.requests.append(list(texts))
            if any("Bear" in text for text in texts):
                raise Transient("server", detail="500")
            return [translated(text) for text in texts]

    fake = Whole(limits=Limits(retries=1, first_wait_seconds=0.0, breaker=50))
    with pytest.raises(Incomplete, match=r"1 of 8 .* \(1 server\)") as caught:
        port(source, to="ru", translator=fake, out=tmp_path / "out")
    assert caught.value.report["translated"] == 7
    assert caught.value.report["retries"] == 2


def test_a_service_that_fails_stops_and_keeps_what_is_done(source, tmp_path):
    class Down(Fake):
        async def translate(self, texts, source, target):
            if len(self.requests) >= 2:
                raise Transient("rate-limited", detail="429")
            return await super().translate(texts, source, target)

    fake = Down(limits=Limits(retries=9, first_wait_seconds=0.0, breaker=3))
    with pytest.raises(BackendError, match=r"requests in a row failed .* everything finished is saved"):
        port(source, to="ru", translator=fake, out=tmp_path / "out")
    done = set(fake.sent)
    assert len(done) == 6
    rest = Fake()
    port(source, to="ru", translator=rest, out=tmp_path / "out")
    assert len(rest.sent) == 2
    assert not done & set(rest.sent)


def test_requests_that_fail_together_are_one_error(source, tmp_path, caplog):
    """asyncio prints the errors that nobody asked for."""

    class Down(Fake):
        async def translate(self, texts, source, target):
            self.requests.append(list(texts))
            while len(self.requests) < 2:
                await asyncio.sleep(0)
            raise BackendError("down")

    with pytest.raises(BackendError, match="down"):
        port(source, to="ru", translator=Down(), out=tmp_path / "out")
    gc.collect()
    assert not caplog.records


def test_a_bad_answer_is_no_translation(source, tmp_path):
    answers = {"Water boils": "", "Rain": "\ud800"}
    fake = Fake(answer=lambda text, nth: answers.get(text, answers.get(text[:4], translated(text))))
    with pytest.raises(Incomplete) as caught:
        port(source, to="ru", translator=fake, out=tmp_path / "out")
    assert caught.value.report["passes"][0]["reasons"] == {"empty": 1, "malformed": 1}


def test_too_few_answers(source, tmp_path):
    class Few(Fake):
        async def translate(self, texts, source, target):
            return []

    with pytest.raises(BackendError, match="0 answers to 3 texts"):
        port(source, to="ru", translator=Few(), out=tmp_path / "out")


def test_failure_reasons_of_a_translator_come_through(source, tmp_path):
    fake = Fake(answer=lambda text, nth: Failure("too-long", "", False))
    with pytest.raises(Incomplete, match="8 too-long"):
        port(source, to="ru", translator=fake, out=tmp_path / "out")
