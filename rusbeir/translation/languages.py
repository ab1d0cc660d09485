"""The codes by which translators know languages."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from rusbeir.errors import BadInput
from rusbeir.languages import list_broader_tags


@dataclass(frozen=True, kw_only=True)
class Codes:
    """The languages of one translator, by its own codes."""

    translator: str
    codes: tuple[str, ...]
    aliases: Mapping[str, str]
    """BCP 47 in lower case -> the code, where they differ."""

    def among(self, codes: tuple[str, ...]) -> Codes:
        """The same for a model that says itself which codes it knows."""
        return replace(self, codes=codes)

    def source(self, tag: str) -> str:
        """The code of a language to translate from. Raises BadInput, which lists the codes, where there is none."""
        return self._find(tag, "from", any_script=True)

    def target(self, tag: str) -> str:
        """The code of a language to translate into; never one in another script. BadInput as source."""
        return self._find(tag, "into", any_script=False)

    def pair(self, source: str, target: str) -> tuple[str, str]:
        """The codes of the languages to translate from and into. Raises BadInput as source and target do."""
        return self.source(source), self.target(target)

    @cached_property
    def _by_tag(self) -> dict[str, str]:
        return {code.lower().replace("_", "-"): code for code in self.codes}

    def _find(self, tag: str, direction: str, *, any_script: bool) -> str:
        for candidate in list_broader_tags(tag, any_script=any_script):
            if (alias := self.aliases.get(candidate)) in self.codes and alias is not None:
                return alias
            if candidate in self._by_tag:
                return self._by_tag[candidate]
        near = difflib.get_close_matches(tag.lower(), self._by_tag, n=1)
        raise BadInput(
            f"The translator {self.translator} does not translate {direction} {tag!r}."
            f"{f' Did you mean {self._by_tag[near[0]]!r}?' if near else ''} It has: {', '.join(sorted(self.codes))}."
        )
