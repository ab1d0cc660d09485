"""A search body of the user's own, with {{query}} where the text of a query belongs, as Mustache has it on servers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rusbeir.errors import BackendError, BadInput
from rusbeir.text import digest, shorten

_QUERY = re.compile(r"\{\{#toJson\}\}\s*query\s*\{\{/toJson\}\}|\{\{\s*query\s*\}\}")
_TAG = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_PROBE = 'a "b" \\ \n {c}'
"""A text that leaves JSON broken wherever it is put in without being escaped."""


@dataclass(frozen=True, kw_only=True)
class QueryTemplate:
    """The body of a search, as text."""

    path: Path
    text: str

    @property
    def digest(self) -> str:
        return digest(self.text, chars=12)

    def render(self, query: str) -> dict[str, Any]:
        """Return the body with the query in it: {{query}} as JSON escapes it, {{#toJson}}query{{/toJson}} in quotes."""
        quoted = json.dumps(query, ensure_ascii=False)
        filled = _QUERY.sub(lambda tag: quoted if "#" in tag[0] else quoted[1:-1], self.text)
        body: dict[str, Any] = json.loads(filled)
        return body


def read_template(path: str | Path) -> QueryTemplate:
    """Read a file with the body of a search.

    Raises BadInput where it has no {{query}}, where it has other tags, and where it is not a JSON object once a query
    is in it.
    """
    path = Path(path)
    if not path.is_file():
        raise BadInput(f"There is no file {path}. Name one with the body of a search, with {{{{query}}}} in it.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 ({error}).") from error
    except OSError as error:
        raise BackendError(f"Cannot read {path}: {error.strerror or error}.") from error
    if not _QUERY.search(text):
        raise BadInput(
            f"{path} has no {{{{query}}}}, so every query would be the same search. Write it where the text belongs, "
            'as in {"query": {"match": {"title": "{{query}}"}}}.'
        )
    if other := _TAG.search(_QUERY.sub("", text)):
        raise BadInput(
            f"{path} has the tag {shorten(other[0], 60)!r}, for which there is no value: only {{{{query}}}} and "
            "{{#toJson}}query{{/toJson}} are filled in. Write the value that your application sends."
        )
    template = QueryTemplate(path=path, text=text)
    try:
        body = template.render(_PROBE)
    except ValueError as error:
        raise BadInput(
            f"{path} is not JSON once a query is in it ({error}). {{{{query}}}} stands in double quotes, "
            "{{#toJson}}query{{/toJson}} without them."
        ) from error
    if not isinstance(body, dict) or "from" in body:
        reason = "begins its hits at `from`, which cuts off the first" if isinstance(body, dict) else "is not an object"
        raise BadInput(f"{path} {reason}. It is the body of a search: an object with `query`.")
    return template
