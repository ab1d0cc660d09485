"""A language model that writes a document again in other words, asked by the means that translate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Self, Unpack, cast

from rusbeir.errors import BadInput
from rusbeir.jobs import THOUGHTS, digest_prompts, find_prompt_language, read_prompts
from rusbeir.languages import english_name
from rusbeir.translation import Capacity, LlmTranslator, TranslatorOptions, make

TEMPERATURE = 0.2
"""Cocktail's."""
MAX_TEMPERATURE = 2.0
PROMPTS = "rewrite"


@dataclass(frozen=True, kw_only=True)
class Rewriter(LlmTranslator):
    """A translator from a language into itself, of whole documents. Its options are those of the translator llm."""

    temperature: float = TEMPERATURE
    schema: ClassVar[Mapping[str, Any] | None] = None

    @classmethod
    def make(cls, *, temperature: float = TEMPERATURE, **options: Unpack[TranslatorOptions]) -> Self:
        """Make the rewriter with these options. Raises BadInput for one that llm does not take."""
        if not 0 <= temperature <= MAX_TEMPERATURE:
            raise BadInput(f"The temperature is {temperature:g}: it must be from 0 to {MAX_TEMPERATURE:g}.")
        llm = cast(LlmTranslator, make("llm", **options)[0])
        if llm.segments_per_request > 1:
            raise BadInput("A document is rewritten in a request of its own: leave segments_per_request out.")
        known = {field.name: getattr(llm, field.name) for field in fields(llm) if field.init}
        return cls(**known, temperature=temperature)

    @property
    def signature(self) -> str:
        model = super().signature.split("|")[1]
        heat = f"t:{self.temperature:g}*{self.attempts}"
        return f"rewrite|{model}|prompt:{digest_prompts(PROMPTS)}|seed:{self.seed}|{heat}"

    @property
    def capacity(self) -> Capacity:
        """Whole documents of any length, in which nothing is masked: the words around a mask would stay as they are."""
        return replace(super().capacity, max_chars=None, mask="plain", levels=("field",))

    def write_messages(self, text: str, source: str, target: str) -> list[dict[str, str]]:
        """Write the messages that ask the model about a document."""
        prompt = read_prompts(PROMPTS)[find_prompt_language(PROMPTS, source)]["prompt"].strip()
        return [{"role": "user", "content": prompt.format(text=text, language=english_name(source))}]

    def read_answer(self, answer: str) -> str:
        """Read the rewritten text in a model's answer."""
        return read_rewriting(answer)

    def find_temperature(self, attempt: int) -> float:
        """Return the temperature, one for all attempts; 0 is for the first alone, for another seed changes nothing."""
        return self.temperature or super().find_temperature(attempt)


def read_rewriting(answer: str) -> str:
    """Read what follows the label of a prompt at the beginning of a line; the whole answer where there is no label.

    A model that gives several texts, each behind a label, is taken at its first.

    >>> read_rewriting("Sure!\\n\\n**Rewritten Text:** Water boils at 100 °C.")
    'Water boils at 100 °C.'
    """
    before, *labelled = _label().split(THOUGHTS.sub("", answer))
    return next(filter(None, map(str.strip, labelled)), "") if labelled else before.strip()


@cache
def _label() -> re.Pattern[str]:
    labels = "|".join(sorted({re.escape(table["label"]) for table in read_prompts(PROMPTS).values()}))
    return re.compile(rf"^[ \t*_#>]*+(?:{labels})[ \t*_]*+[:：]\*{{0,2}}[ \t]*+", re.IGNORECASE | re.MULTILINE)
