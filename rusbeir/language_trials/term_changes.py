"""How far the terms of rusbeir, of Elasticsearch's analyzer and of an older version of rusbeir differ."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations
from pathlib import Path

from rusbeir.analysis import Analyzer, load_chain
from rusbeir.errors import BadInput
from rusbeir.retrieval import Server, analyzer_of
from rusbeir.storage import atomic_file
from rusbeir.text import batched

HEADER = "# terms of rusbeir, by "
"""Begins a file of terms; the signature of the analyzer follows, then lines of a word, a tab and its terms."""
WORDS_PER_REQUEST = 1_000
"""The server makes at most 10,000 terms per request."""
N_EXAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms that an analyzer makes of each word alone."""

    name: str
    signature: str
    of_word: Mapping[str, str]
    """Word -> its terms, separated by spaces; empty where it is dropped."""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The tokens of a text on which two analyzers differ."""

    first: str
    second: str
    n_tokens: int
    """Tokens of the text that both know."""
    n_unknown: int
    """Tokens that one of them does not know: a file of terms lacks them."""
    differ: float
    """The share of the tokens whose terms are not the same strings, or that only one of them drops."""
    join_others: float
    """The share of the tokens that one of them alone drops, or that the two join with other words of the text. Terms
    that are spelled otherwise but join the same words find the same documents."""
    examples: Sequence[tuple[str, int, str, str]]
    """The commonest words whose terms differ: word, tokens, the first one's terms, the second one's."""


def count_words(language: str, profile: str, texts: Iterable[Path]) -> Counter[str]:
    """Count each word, as the profile separates them, in these files of text in UTF-8."""
    chain = load_chain(replace(Analyzer(language, profile).recipe, keep_only_stop_words=False))
    pieces: Counter[str] = Counter()
    for path in texts:
        try:
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    pieces.update(line.split())
        except (OSError, ValueError) as error:
            raise BadInput(f"{path}: {error}. Give a file of text in UTF-8.") from error
    words: Counter[str] = Counter()
    for piece, count in pieces.items():
        for token in chain.explain(piece):
            words[token.surface] += count
    if not words:
        raise BadInput(f"{', '.join(map(str, texts))}: there is no word in it.")
    return words


def analyze_words(language: str, profile: str, words: Iterable[str]) -> Terms:
    """The terms that this version of rusbeir makes of each word."""
    analyzer = Analyzer(language, profile)
    chain = load_chain(replace(analyzer.recipe, keep_only_stop_words=False))
    words = list(words)
    of_word = dict(zip(words, chain.lines(words), strict=True))
    return Terms(name="rusbeir", signature=analyzer.signature, of_word=of_word)


def ask_server(server: Server, language: str, words: Iterable[str]) -> Terms:
    """The terms that the server's analyzer, as in the language's mapping, makes of each word."""
    name, definition = analyzer_of(language, server)
    request: dict[str, object] = {"analyzer": name}
    if definition:  # An analyzer cannot be defined in a request, but what it consists of can.
        custom, filters = definition["analyzer"][name], definition["filter"]
        request = {"tokenizer": custom["tokenizer"], "filter": [filters.get(step, step) for step in custom["filter"]]}
    of_word: dict[str, str] = {}
    for batch in batched(words, WORDS_PER_REQUEST):
        # Offsets count UTF-16 code units; each word is followed by a line feed.
        starts = [0, *accumulate(len(word.encode("utf-16-le")) // 2 + 1 for word in batch)]
        terms: list[list[str]] = [[] for _ in batch]
        tokens = server.ask(
            "POST",
            "/_analyze",
            {**request, "text": "\n".join(batch)},
            read=lambda answer: [(int(token["start_offset"]), str(token["token"])) for token in answer["tokens"]],
        )
        for start, term in tokens:
            terms[bisect_right(starts, start) - 1].append(term)
        of_word.update(zip(batch, map(" ".join, terms), strict=True))
    signature = f"{server.release}|lang:{language}|server:{name}"
    return Terms(name=server.address, signature=signature, of_word=of_word)


def save_terms(path: Path, terms: Terms) -> None:
    """Write the terms, for a later version to be compared with; replaces the file."""
    lines = (f"{word}\t{of_word}\n" for word, of_word in terms.of_word.items())
    with atomic_file(path) as file:
        file.write("".join([f"{HEADER}{terms.signature}\n", *lines]).encode())


def read_terms(path: Path, language: str) -> Terms:
    """The terms that save_terms wrote. Raises BadInput, with the line, for another file or another language."""
    try:
        header, *lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}. Give a file that `rusbeir languages drift --save` wrote.") from error
    signature = header.removeprefix(HEADER)
    if header == signature or not signature.startswith(f"lang:{language}|"):
        raise BadInput(
            f"{path}:1: these are not terms in {language!r}. "
            "Give a file that `rusbeir languages drift --save` wrote for this language."
        )
    of_word: dict[str, str] = {}
    for number, line in enumerate(lines, start=2):
        word, tab, terms = line.partition("\t")
        if line and not (word and tab):
            raise BadInput(f"{path}:{number}: this is not a word, a tab and its terms. Write the file again.")
        if line:
            of_word[word] = terms
    return Terms(name=str(path), signature=signature, of_word=of_word)


def compare_terms(words: Mapping[str, int], analyses: Sequence[Terms]) -> Iterator[Drift]:
    """Compare each two of the analyzers on a text with these words and their counts."""
    for first, second in combinations(analyses, 2):
        known = [word for word in words if word in first.of_word and word in second.of_word]
        total = sum(words[word] for word in known)
        differing = [word for word in known if first.of_word[word] != second.of_word[word]]
        joined = [_join(known, terms.of_word) for terms in (first, second)]
        apart = [word for word in known if joined[0][word] != joined[1][word]]
        commonest = sorted(differing, key=lambda word: -words[word])[:N_EXAMPLES]
        yield Drift(
            first=first.name,
            second=second.name,
            n_tokens=total,
            n_unknown=sum(words.values()) - total,
            differ=sum(words[word] for word in differing) / max(total, 1),
            join_others=sum(words[word] for word in apart) / max(total, 1),
            examples=tuple((word, words[word], first.of_word[word], second.of_word[word]) for word in commonest),
        )


def _join(words: Sequence[str], of_word: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Word -> the words that have the same terms; none where it is dropped."""
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(of_word[word], []).append(word)
    return {
        word: group for terms, same in groups.items() for group in [frozenset(same if terms else ())] for word in same
    }
