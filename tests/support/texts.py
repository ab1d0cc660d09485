"""Texts that are hard to cut, to mask and to put together again."""

from __future__ import annotations

from hypothesis import strategies as st

from rusbeir.translation.segments.glossary import Glossary

# What looks like a mask in some style, whole, broken and nested; what is protected; what structures a text.
SNIPPETS = [
    *(
        '<x id="1"/>',
        '<x id="2"/>',
        "< X id = '1' >",
        "</x>",
        "<x",
        '<x id="',
        "x id=1>",
        "&lt;x id=&quot;1&quot;/&gt;",
    ),
    *(
        "{1}",
        "{ 2 }",
        "{{1}}",
        "{",
        "}",
        "｛1｝",
        "{12345678}",
        "[1]",
        "[ 2 ]",
        "[[1]]",
        "[",
        "]",
        "【1】",
        "Q1Z",
        "Q",
        "1Z",
        "QQ1ZZ",
    ),
    *(
        "⟦1⟧",
        "⟦",
        "&",
        "&amp;",
        "&amp;amp;",
        "&#39;",
        "<",
        ">",
        "<b>",
        "</b>",
        '<a href="http://a.b">',
        "<!-- x\ny -->",
    ),
    *(
        "http://a.org/b_(c).",
        "a.b@c.org",
        "doi:10.1000/x1",
        "PMID: 123",
        "5 mg/kg",
        "3.5 %",
        "10^-3",
        "$x^2$",
        "\\cite{a}",
    ),
    *(
        "\\[ a \\]",
        "`f()`",
        "```\ncode\n```",
        "snake_case",
        "/usr/lib/x",
        "C:\\a\\b",
        "main.py",
        "%s",
        "{name}",
        "2.",
        "-----",
    ),
    *("neural network", "Neural Network", "SciFact", "C++", "神经网络", "1", "12", "Q1", "x"),
    *(
        "\n",
        "\r\n",
        "\r",
        "\u2028",
        "\u0085",
        "\x0b",
        "\x1c",
        "\t",
        "  ",
        "\u00a0",
        "\n- ",
        "\n* ",
        "\n• ",
        "\n1. ",
        "\na) ",
        "\n> ",
    ),
    *(
        "Mr. Smith went. ",
        "Да. Нет! ",
        "т. е. это. ",
        "日本。",
        "«Да?» ",
        "A\u2028.",
        "Ünïcödé\u0301 ",
        "👩‍👩‍👧",
        "\u200b",
        "\ufeff",
    ),
]
GLOSSARY = Glossary({"neural network": None, "SciFact": None, "C++": None, "神经网络": None})


def texts(**options: int) -> st.SearchStrategy[str]:
    """Any text that UTF-8 can encode, mixed with SNIPPETS."""
    piece = st.one_of(st.sampled_from(SNIPPETS), st.sampled_from(SNIPPETS), st.text(max_size=8))
    return st.lists(piece, **({"max_size": 12} | options)).map("".join)
