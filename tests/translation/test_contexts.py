"""Segments that are translated with what is around them in their document."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rusbeir.errors import BadInput
from rusbeir.jobs import Journal
from rusbeir.translation.backends import make
from rusbeir.translation.backends.llm import LlmTranslator
from rusbeir.translation.porting.api import port, translate_texts
from rusbeir.translation.translator import Capacity, Context, Outcome
from tests.support.openai_server import Endpoint, completion
from tests.support.small_port import Fake, dataset_bytes, failing, records, translated, write_source

SENTENCES = Capacity(mask="bracket", levels=("sentence",))
LINE = "Ice melts. Snow falls."


@dataclass(kw_only=True)
class Reader(Fake):
    """A Fake that remembers the context of each text that has one; "5 kg" is masked in it."""

    signature: str = "reader-1"
    context: int = 1
    shown: dict[str, Context] = field(default_factory=dict)

    async def translate_in_context(
        self, context: Context, texts: Sequence[str], source: str, target: str
    ) -> list[Outcome]:
        assert not self.shown.keys() & set(texts), "each text is asked once"
        self.shown |= dict.fromkeys(texts, context)
        return await self.translate(texts, source, target)


def test_what_is_around_a_segment_goes_with_it(tmp_path):
    small = write_source(tmp_path / "small")
    reader = Reader()
    port(small, to="ru", translator=reader, out=tmp_path / "out")
    assert reader.shown == {
        "Water boils": ("", [], [LINE]),
        LINE: ("", ["Water boils"], ["Bear 5 kg"]),
        "Bear [1]": ("Water boils", [LINE], ["Wolf 7 kg"]),
        "Wolf [1]": ("Water boils", ["Bear 5 kg"], []),
        "Mountain lake": ("", [], [LINE]),
    }
    # The same segment is one, in the context of its first place; queries and a text alone have none.
    assert reader.sent.count(LINE) == 1
    assert {"ice melts", "mountain lake morning"} < {*reader.sent}
    assert not any(text.startswith("Rain falls") for text in reader.shown)
    plain = Fake(signature="reader-1")
    port(small, to="ru", translator=plain, out=tmp_path / "plain")
    assert dataset_bytes(tmp_path / "plain") == dataset_bytes(tmp_path / "out")
    assert list_keys(tmp_path / "plain") < list_keys(tmp_path / "out"), "the tasks of a port are those without context"


def list_keys(folder: Path) -> set[bytes]:
    with Journal.open(folder / "work" / "journal.sqlite", {}) as journal:
        return {bytes(key) for (key,) in journal.read("SELECT key FROM task")}


def test_a_resumed_port_shows_the_same(tmp_path):
    small, stopped = write_source(tmp_path / "small"), Reader(answer=failing("refused", "Bear", "Wolf", retry=False))
    port(small, to="ru", translator=Reader(), out=tmp_path / "whole")
    with pytest.raises(Exception, match="have no translation"):
        port(small, to="ru", translator=stopped, out=tmp_path / "out")
    rest = Reader()
    port(small, to="ru", translator=rest, out=tmp_path / "out", retry_failed=True)
    assert rest.shown == {text: stopped.shown[text] for text in ("Bear [1]", "Wolf [1]")}
    assert dataset_bytes(tmp_path / "out") == dataset_bytes(tmp_path / "whole")


def test_later_translators_of_a_chain_see_the_neighbours_of_what_is_left(tmp_path):
    lacking = Fake(answer=failing("no-entry", "Snow", "Wolf", retry=False))
    reader = Reader(capacity=SENTENCES, context=2)
    port(write_source(tmp_path / "small"), to="ru", translator=[lacking, reader], out=tmp_path / "out")
    assert reader.shown == {
        "Ice melts.": ("", ["Water boils"], ["Snow falls.", "Bear 5 kg"]),
        "Snow falls.": ("", ["Water boils", "Ice melts."], ["Bear 5 kg", "Wolf 7 kg"]),
        "Wolf [1]": ("Water boils", ["Snow falls.", "Bear 5 kg"], []),
    }


def test_segments_that_are_translated_again(tmp_path):
    small, out, path = write_source(tmp_path / "small"), tmp_path / "out", tmp_path / "again.jsonl"
    port(small, to="ru", translator=Fake(), out=out)
    path.write_text('{"kind": "document", "id": "d1", "field": "text", "segment": 2}\n')
    reader = Reader(answer=lambda text, nth: translated(text).upper())
    assert port(small, to="ru", translator=reader, out=out, retry_segments=path)["retried"]["changed"] == 1
    assert reader.shown == {"Bear [1]": ("Water boils", [LINE], ["Wolf 7 kg"])}
    assert "МЕДВЕДЬ 5 kg" in records(out / "corpus.jsonl")[0]["text"]


def test_a_damaged_context_is_one_line(tmp_path):
    small, out = write_source(tmp_path / "small"), tmp_path / "out"
    with pytest.raises(Exception, match="have no translation"):
        port(small, to="ru", translator=Reader(answer=failing("refused", "Bear", retry=False)), out=out)
    with Journal.open(out / "work" / "journal.sqlite", {}) as journal:
        journal.write("UPDATE task SET payload = '[' WHERE kind LIKE 'context%'", [()])
    with pytest.raises(BadInput, match=r"^The journal .* is damaged \(.*\)\. Move it away"):
        port(small, to="ru", translator=Reader(), out=out, retry_failed=True)


def test_a_model_is_told_what_not_to_translate(monkeypatch):
    plain, reading = (make("llm", llm="tiny", context=context)[0] for context in (None, 1))
    assert reading.signature != plain.signature
    assert reading.signature.endswith("|context:1")
    with Endpoint() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        server.script.extend(completion(json.dumps({"translation": "Ella se hundió."})) for _ in range(2))
        context = Context('The "Vasa" \ud83d', ["{A ship}."], [])

        async def ask() -> list[Outcome]:
            try:
                return [
                    *await reading.translate_in_context(context, ["It sank."], "en", "es"),
                    *await reading.translate(["It sank."], "en", "es"),
                ]
            finally:
                await reading.close()

        assert asyncio.run(ask()) == ["Ella se hundió."] * 2
    with_context, without = ([message["content"] for message in asked["messages"]] for asked in server.asked)
    assert without == [message["content"] for message in plain.write_messages("It sank.", "en", "es")]
    assert with_context[1:] == ["It sank."]
    assert with_context[0].startswith(without[0])
    assert '{"title": "The \\"Vasa\\" ?", "before": ["{A ship}."]}' in with_context[0]
    tokens = [model.estimate_tokens(1, 4000, "en", "es").input for model in (plain, reading)]
    assert tokens[1] > tokens[0] + 2 * 1000, "two neighbours of the same length are read"


@pytest.mark.parametrize("context", [-1, 0.5, True, "much"])
def test_contexts_that_are_no_number(context):
    with pytest.raises(BadInput, match=r"context=.* is not a number of segments"):
        LlmTranslator(llm="tiny", context=context).check("en", "es")


def test_texts_without_documents_have_no_context(tmp_path):
    with (
        pytest.raises(BadInput, match="context=1 is for the segments of a port"),
        translate_texts(["Ice melts."], source="en", target="ru", out=tmp_path / "back", translator=Reader()),
    ):
        pass
    shutil.rmtree(tmp_path / "back")
    with pytest.raises(BadInput, match="apertium does not take the option 'context'"):
        make("apertium", source="en", target="es", context=1)
