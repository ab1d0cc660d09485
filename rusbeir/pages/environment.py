"""The jinja2 environment of pages, in which everything is escaped."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from rusbeir import __version__
from rusbeir.errors import require
from rusbeir.pages.scales import make_scale

_TEMPLATES = Path(__file__).parent / "templates"
_HYPHENATED = re.compile(r"(?<!\S)\S{1,20}-\S{1,20}(?!\S)")
"""Words with a hyphen, such as names of models, at which a heading is not broken."""
_PIECES = re.compile(r"[^,(/=]*[,(/=]|[^,(/=]+")
"""Runs of letters with the marks that follow them, after which a long name may be broken."""


def make_environment(templates: Path, purpose: str, extra: str) -> Any:
    """Make an environment for the templates of a folder, which may extend and import those that all pages share.

    purpose and extra name what is missing where jinja2 is not installed.
    """
    jinja2 = require("jinja2", purpose, extra)
    markup = jinja2.utils.markupsafe.Markup
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([templates, _TEMPLATES]), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip

    def read(name: str) -> Any:
        source: str = environment.loader.get_source(environment, name)[0]
        return markup(source)

    def keep_whole(text: str) -> Any:
        return markup(_HYPHENATED.sub(lambda word: f'<span class="whole">{word[0]}</span>', str(markup.escape(text))))

    environment.globals |= {"read": read, "version": __version__, "make_scale": make_scale}
    environment.globals["inert"] = lambda data: markup(make_inert(data))
    environment.filters |= {
        # A name may be broken after a mark, and nowhere else.
        "breakable": lambda text: markup("<wbr>").join(_PIECES.findall(text)),
        "whole": keep_whole,
        "count": lambda n: f"{n:,}",
        "percent": lambda share: f"{share:.2%}".replace("%", " %"),
        "points": lambda value: f"{100 * value:.2f}",
        "signed": lambda value: f"{100 * value:+.2f}".replace("-", "−"),
    }
    return environment


def make_inert(data: Any) -> str:
    """JSON that can be in a script element: no tag ends or begins in it.

    >>> make_inert("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
