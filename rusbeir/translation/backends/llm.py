"""A language model behind an OpenAI-compatible endpoint: one text a request or several, one JSON object an answer."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, ClassVar, Self, TypeAlias

from rusbeir.errors import BadInput, missing_extra, option
from rusbeir.jobs import (
    ALL_PRICES,
    PRICES,
    THOUGHTS,
    Answer,
    Exchange,
    Limits,
    Llm,
    Meter,
    Price,
    Rejected,
    find_price,
    list_missing_prices,
    read_object,
    read_prompts,
)
from rusbeir.languages import english_name
from rusbeir.text import shorten
from rusbeir.translation.backends.common import PerLoop, ask_sendable, judge_answer, one_by_one
from rusbeir.translation.backends.registry import preset
from rusbeir.translation.checks.checks import FAILURES, SEGMENT_CHECKS, failure
from rusbeir.translation.translator import Capacity, Context, Failure, Outcome, Segment, Tokens

Judge: TypeAlias = Callable[[Segment], Failure | None]
"""What is wrong with an answer; None where it may be a translation."""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"translation": {"type": "string"}},
    "required": ["translation"],
    "additionalProperties": False,
}

# Only for estimates before anything is sent: English text in, and what most tokenizers make of other scripts out.
_INPUT_TOKENS_PER_CHAR = 0.25
_OUTPUT_TOKENS_PER_CHAR = 0.5
_PROMPT_TOKENS_PER_CHAR = 0.5
_ANSWER_FRAME_TOKENS = 6
_SPARE_TOKENS = 2048
_TOKENS_PER_CHAR = 3
_MAX_CHARS_PER_TOKEN = 10


def judge(segment: Segment) -> Failure | None:
    """The Failure of an answer that refuses, chats, copies or is in another language; None for any other.

    >>> judge(Segment("Water boils.", "I'm sorry, but I can't help with that.", "en", "ru")).reason
    'refused'
    """
    flags = [flag for name in (*FAILURES, "chat-prefix") if (flag := SEGMENT_CHECKS[name](segment))]
    chat = next((flag for flag in flags if flag.name == "chat-prefix"), None)
    return failure(flags) or (Failure("malformed", f"not only a translation: {chat.detail}", True) if chat else None)


@dataclass(frozen=True, kw_only=True)
class LlmTranslator:
    """A language model. An answer that is not a translation is asked for again with another seed before it fails."""

    name: str = "llm"
    llm: str = ""
    """The model's name at the endpoint."""
    attempts: int = 5
    """How often one text is asked at most; one that is refused each time fails for good."""
    seed: int = 0
    """The seed of the first attempt; each further one adds 1."""
    retry_temperature: float = 0.3
    """The temperature of all attempts but the first, which has 0: with 0 another seed would change nothing."""
    context: int = 0
    """How many segments before and after each the model is shown, with the title of the document."""
    segments_per_request: int = 1
    """How many texts one request has at most. Those whose translations do not fit are asked for again alone."""
    input_price: float | None = None
    """USD per million tokens sent; None where it is not known."""
    output_price: float | None = None
    """USD per million tokens answered; None where it is not known."""
    cached_price: float | None = None
    """USD per million tokens sent that the provider has in its cache; None where they cost as others."""
    batch_share: float | None = None
    """What a batch costs of these prices; None where it is not known."""
    limits: Limits = field(default_factory=lambda: preset("llm").limits)
    judge: Judge = field(default=judge, repr=False)
    meter: Meter = field(default_factory=Meter, repr=False, compare=False)
    exchange: Exchange | None = field(default=None, repr=False, compare=False)
    schema: ClassVar[Mapping[str, Any] | None] = SCHEMA
    """The schema of an answer; None for plain text."""
    _clients: PerLoop[Llm] = field(default_factory=PerLoop, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise BadInput for options that cannot be: also for an estimate or a file of requests, without check."""
        for name, value in ((name, getattr(self, name)) for name in (*ALL_PRICES, "retry_temperature")):
            if value is not None and (type(value) not in (int, float) or not 0 <= value < math.inf):
                raise BadInput(f"The option {name!r} is {value!r}: it must be a number from 0.")
        if type(self.attempts) is not int or self.attempts < 1:
            raise BadInput(f"attempts is {self.attempts}: it must be at least 1.")
        if type(self.context) is not int or self.context < 0:
            raise BadInput(f"{option('context', self.context)} is not a number of segments. Give 1, or leave it out.")
        together = option("segments_per_request", self.segments_per_request)
        if type(self.segments_per_request) is not int or self.segments_per_request < 1:
            raise BadInput(f"{together} is not a number of segments. Give 8, or leave it out.")
        if self.context and self.segments_per_request > 1:
            raise BadInput(
                f"{option('context', self.context)} and {together} contradict each other: a context is that of one "
                "segment. Leave one of them out."
            )

    @property
    def signature(self) -> str:
        model = "".join(char if char.isprintable() and char not in " |" else "_" for char in self.llm)
        heat = f"|t:0+{self.retry_temperature:g}*{self.attempts - 1}" if self.attempts > 1 else "|t:0"
        signature = f"llm|model:{model}|prompt:{_prompt_digest(self.context)}|seed:{self.seed}{heat}"
        if self.segments_per_request > 1:
            signature += f"|together:{self.segments_per_request}-{_digest(read_prompts('translate')['together'])}"
        return f"{signature}|context:{self.context}" if self.context else signature

    @property
    def capacity(self) -> Capacity:
        """The row's, with the cost that the prices give for English into a language of middling tokens."""
        row = preset("llm").capacity
        tokens = Tokens(
            round((_PROMPT_TOKENS_PER_CHAR + _INPUT_TOKENS_PER_CHAR) * 1e6), round(_OUTPUT_TOKENS_PER_CHAR * 1e6)
        )
        cost = round(self.price_tokens(tokens), 6)
        together = row.max_chars if self.segments_per_request > 1 else None
        return replace(row, cost_per_million_chars=cost, max_items=self.segments_per_request, request_chars=together)

    @property
    def price(self) -> Price:
        """The prices that are given, or listed for the model; a missing one as 0."""
        return find_price(self.llm, {name: getattr(self, name) for name in ALL_PRICES})

    @property
    def missing_prices(self) -> tuple[str, ...]:
        """The names of the options with a price that are neither given nor listed for the model."""
        return list_missing_prices([name for name in PRICES if getattr(self, name) is not None], self.llm)

    def estimate_tokens(self, texts: int, chars: int, source: str, target: str) -> Tokens:
        """The tokens of so many texts, of so many characters together, each with its prompt and answered once."""
        messages, read = self.write_messages("", source, target), chars
        if self.context:
            # At most: what is around a text is often shorter, or missing.
            messages, read = add_context(messages, Context()), chars * (1 + 2 * self.context)
        requests, frame = texts, _ANSWER_FRAME_TOKENS if self.schema else 0
        if self.segments_per_request > 1:
            from rusbeir.translation.backends import llm_groups

            messages, frame = llm_groups.write_messages([], source, target), llm_groups.FRAME_TOKENS
            requests = self.capacity.count_requests(texts, chars)
        prompt = sum(len(message["content"]) for message in messages)
        received = chars * _OUTPUT_TOKENS_PER_CHAR + texts * frame
        sent = round((requests * prompt + read) * _INPUT_TOKENS_PER_CHAR)
        return Tokens(sent, round(received), round(prompt * _INPUT_TOKENS_PER_CHAR))

    def price_tokens(self, tokens: Tokens) -> float:
        """USD for so many tokens, by the prices that are given."""
        return self.price.of(tokens.input, tokens.output)

    def with_meter(self, meter: Meter) -> Self:
        """The translator, which reserves each request at the meter before it sends it."""
        return replace(self, meter=meter)

    def with_exchange(self, exchange: Exchange) -> Self:
        """Return the translator, which takes its answers from batches. Raises BadInput without a model."""
        self._refuse_no_model()
        return replace(self, exchange=exchange)

    def check(self, source: str, target: str) -> None:
        """BadInput without a model, an endpoint or a key; MissingExtra without the package openai.

        Any pair of languages is worth a try.
        """
        self._refuse_no_model()
        if find_spec("openai") is None:
            raise missing_extra("openai", "The translator llm", "llm")
        Llm.from_environment(self.llm)
        self.write_messages("", source, target)

    def write_messages(self, text: str, source: str, target: str) -> list[dict[str, str]]:
        """Write the messages that ask the model about a text."""
        system = _prompt().format(source=english_name(source), target=english_name(target))
        return [{"role": "system", "content": system}, {"role": "user", "content": text}]

    def read_answer(self, answer: str) -> str | None:
        """The translation in a model's answer; None where there is none."""
        return read_translation(answer)

    def find_temperature(self, attempt: int) -> float:
        """Return the temperature of an attempt; attempts count from 0."""
        return self.retry_temperature if attempt else 0.0

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """One outcome a text, of a request each or of one together, in which those that fail are to be asked alone."""
        return await self.translate_in_context(None, texts, source, target)

    async def translate_in_context(
        self, context: Context | None, texts: Sequence[str], source: str, target: str
    ) -> list[Outcome]:
        """One outcome a text, as for translate, all with the same context."""
        client = self._clients.get(self._open)

        async def ask(sent: list[str]) -> Sequence[Outcome]:
            if len(sent) > 1 and self.segments_per_request > 1:
                return await self._ask_together(client, sent, source, target)
            return await one_by_one(sent, lambda text: self._ask(client, context, text, source, target))

        return await ask_sendable(texts, ask)

    async def close(self) -> None:
        """Close the connections of this event loop. Harmless when repeated."""
        if (client := self._clients.take()) is not None:
            await client.close()

    def _refuse_no_model(self) -> None:
        if not self.llm.strip():
            raise BadInput(
                f"The translator llm needs a model: give {option('llm', 'MODEL')}, as the endpoint names it."
            )

    def _open(self) -> Llm:
        if self.exchange is not None and self.exchange.is_offline:
            return Llm(model=self.llm, endpoint="", key="", price=self.price, exchange=self.exchange)
        timeout = self.limits.timeout_seconds / self.attempts
        llm = Llm.from_environment(self.llm, timeout_seconds=timeout, price=self.price)
        return replace(llm, meter=self.meter, exchange=self.exchange)

    async def _ask_together(self, client: Llm, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """Ask for several texts at once. What is wrong with one of them is a Failure with retry."""
        from rusbeir.translation.backends import llm_groups

        tokens = sum(_TOKENS_PER_CHAR * len(text) + llm_groups.FRAME_TOKENS for text in texts) + _SPARE_TOKENS
        if (longest := self.capacity.max_chars) is not None:
            # What a model can answer to the longest text is what it can answer at all.
            tokens = min(tokens, _TOKENS_PER_CHAR * longest + _SPARE_TOKENS)
        answers = await llm_groups.ask_together(client, texts, source, target, seed=self.seed, max_tokens=tokens)
        return [
            self._judge(text, answer, source, target) if isinstance(answer, str) else answer
            for text, answer in zip(texts, answers, strict=True)
        ]

    async def _ask(self, client: Llm, context: Context | None, text: str, source: str, target: str) -> Outcome:
        messages = self.write_messages(text, source, target)
        if context is not None:
            messages = add_context(messages, context)
        outcome: Outcome = ""
        for attempt in range(self.attempts):
            try:
                answer = await client.chat(
                    messages,
                    schema=self.schema,
                    temperature=self.find_temperature(attempt),
                    seed=self.seed + attempt,
                    max_tokens=_SPARE_TOKENS + _TOKENS_PER_CHAR * len(text),
                    repeat=attempt > 0,
                )
            except Rejected as error:
                reason = error.reason if error.reason in {"too-long", "refused"} else "unsupported"
                return Failure(reason, shorten(error.detail), False)
            outcome = self._read(answer, text, source, target)
            if isinstance(outcome, str):
                return outcome
        # All attempts are used up: asking again would be asked the same.
        return outcome._replace(retry=False) if isinstance(outcome, Failure) else outcome

    def _read(self, answer: Answer, text: str, source: str, target: str) -> Outcome:
        if answer.refusal or answer.finish_reason == "content_filter":
            return Failure("refused", shorten(answer.refusal or "stopped by the server's content filter"), True)
        if answer.finish_reason == "length":
            return Failure("too-long", f"the answer was cut after {answer.output_tokens:,} tokens", True)
        if not answer.text.strip():
            return Failure("empty", "the answer is empty", True)
        if len(answer.text) > _MAX_CHARS_PER_TOKEN * (_SPARE_TOKENS + _TOKENS_PER_CHAR * len(text)):
            return Failure("malformed", f"the answer to {len(text):,} characters has {len(answer.text):,}", True)
        translation = self.read_answer(answer.text)
        if translation is None:
            fault = self.judge(Segment(text, answer.text, source, target))
            if fault is not None and fault.reason == "refused":
                return fault
            return Failure("malformed", shorten(f'no {{"translation": …}} in the answer: {answer.text}'), True)
        return self._judge(text, translation, source, target)

    def _judge(self, text: str, translation: str, source: str, target: str) -> Outcome:
        outcome = judge_answer(text, translation)
        if isinstance(outcome, str):
            return self.judge(Segment(text, outcome, source, target)) or outcome
        return outcome


def _prompt() -> str:
    return str(read_prompts("translate")["system"])


def _prompt_digest(context: int) -> str:
    # Of the prompt alone: signatures of kept translations hold it.
    return _digest(_prompt() + (read_prompts("translate")["context"] if context else ""))


def _digest(prompt: str) -> str:
    return hashlib.blake2b(prompt.encode(), digest_size=4).hexdigest()


def add_context(messages: Sequence[dict[str, str]], context: Context) -> list[dict[str, str]]:
    """The messages with what is around the text, which stays the last message as it is."""
    system, *rest = messages
    shown = json.dumps({name: value for name, value in context._asdict().items() if value}, ensure_ascii=False)
    # Half characters, which cannot be sent, are no loss where nothing is translated.
    about = read_prompts("translate")["context"].format(context=shown.encode(errors="replace").decode())
    return [{**system, "content": system["content"] + about}, *rest]


# A whole object by its frame, whatever quotes and line breaks it contains unescaped; never one that was cut.
_FRAME = re.compile(r"""\{\s*["']?translation["']?\s*:\s*(["'])(.*)\1\s*,?\s*\}""", re.DOTALL)
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])')
_ESCAPED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def read_translation(answer: str) -> str | None:
    r"""The string under "translation"; None where there is none, or where the object was cut.

    Repaired are: text or a fence around the object, thoughts before it, raw line breaks and quotes inside, a comma
    too many. Two objects are as bad as none: nobody knows which is meant.

    >>> read_translation('Sure! ```json\n{"translation": "Вода кипит."}\n```')
    'Вода кипит.'
    >>> read_translation('{"translation": "Вода ки') is None
    True
    """
    if (value := read_object(answer)) is not None:
        translation = value.get("translation")
        return _joined_surrogates(translation) if isinstance(translation, str) else None
    answer = THOUGHTS.sub("", answer)
    if answer.count("translation") == 1 and (frame := _FRAME.search(answer)):
        return _joined_surrogates(_ESCAPE.sub(_unescaped, frame[2]))
    return None


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if escape[0] == "u" else _ESCAPED[escape]


def _joined_surrogates(text: str) -> str | None:
    r"""The text with \ud83d\ude00 made one character; None where half of one is left over."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None
