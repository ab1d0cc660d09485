"""Recipes: every setting that decides which terms a text has, and the signature of them all."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from rusbeir.analysis import lemmas, tokenisers
from rusbeir.analysis.stemmers import SNOWBALL
from rusbeir.analysis.user_rules import FILE, Rules, describe_rules, read_synonyms
from rusbeir.errors import BadInput, require_version
from rusbeir.text import slug

STOP_MATCHES = ("surface", "lemma", "both")
STEM_INPUTS = ("lemma", "surface")
NUMBERS = ("keep", "drop")
TERMS = ("words", "grams", "both")
APOSTROPHES = ("split", "cut", "keep", "hebrew")


class StopList(NamedTuple):
    """A stop list as its file has it: a word a line, below a header of # lines."""

    name: str
    words: frozenset[str]


NO_STOP_WORDS = StopList("none", frozenset())


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A profile of a language: every setting that decides which terms a text has, in the order of the steps."""

    language: str
    normalise: str = "none"
    """nfkc or none."""
    case: str = "none"
    """fold (Unicode casefold), lower (str.lower), simple (each code point alone, as Lucene does) or none."""
    fold: tuple[str, ...] = ()
    """Names of rusbeir.analysis.folding.FOLDS."""
    elision: tuple[str, ...] = ()
    """What is removed before an apostrophe at the start of a word: l, dell."""
    apostrophe: str = "split"
    """split: a word ends at an apostrophe. cut: the apostrophe and what follows are removed (a suffix of a name in
    Turkish). keep: it is a letter (in Ukrainian). hebrew: inside words of Hebrew letters it is a geresh, a quotation
    mark is a gershayim, and both are letters."""
    tokens: str = "words"
    """A name of rusbeir.analysis.tokenisers.TOKENISERS, some of which need an extra; or hf:NAME or hf:FILE, which are
    subwords of a model."""
    possessive: bool = False
    """Whether a final 's is removed."""
    numbers: str = "keep"
    min_chars: int = 1
    """Folded tokens with fewer characters are dropped."""
    lemmas: str = "none"
    """none, a name of rusbeir.analysis.lemmas.LEXICONS, file:PATH or python:module.function; several are joined by +,
    and the first that knows a word answers."""
    lemma_min_chars: int = 1
    """Lexicons are not asked for shorter words; they take single letters for abbreviations (т for так)."""
    stop: StopList = NO_STOP_WORDS
    """A language file gives the name; the words are kept here, so that worker processes open no file."""
    stop_extra: tuple[str, ...] = ()
    stop_match: str = "surface"
    """Whether stop words are looked for among folded tokens (surface), lemmas, or both."""
    keep_only_stop_words: bool = False
    """Whether a text of nothing but stop words, a query or a title such as The Who, keeps them."""
    compounds: str = "none"
    """simplemma: the words that a compound consists of are indexed in addition to it."""
    stemmer: str = "none"
    """none, snowball:<algorithm>, porter (Lucene's), suffixes:PATH or python:module.function."""
    stem: str = "lemma"
    """What the stemmer is given; without a lexicon the lemma is the folded token."""
    stem_min_chars: int = 1
    """Where the stem would be shorter, what the stemmer was given is kept."""
    term_fold: tuple[str, ...] = ()
    """Folds of stems, and of words for grams: stemmers know words with their accents."""
    terms: str = "words"
    """words, grams (the characters of words that are no stop words, in overlapping runs), or both."""
    gram_chars: int = 4
    """The length of a gram."""
    synonyms: str = "none"
    """none or file:PATH, several joined by +. Terms of words are replaced last, those of grams are not."""
    rules: tuple[Rules, ...] = ()
    """What the files and functions say that lemmas, stemmer and synonyms name. Language files do not set it."""

    @property
    def steps(self) -> dict[str, str]:
        """Step -> its value, for the steps that the recipe takes, in their order."""
        stop_words = self.stop.words | set(self.stop_extra)
        steps = {
            "normalise": self.normalise,
            "case": self.case,
            **{f"fold {name}": name for name in self.fold},
            "elision": ", ".join(self.elision) or "none",
            "apostrophe": self.apostrophe if self.apostrophe != "split" else "none",
            "tokens": self.tokens,
            "possessive": "'s" if self.possessive else "none",
            "numbers": self.numbers if self.numbers == "drop" else "none",
            "min_chars": str(self.min_chars) if self.min_chars > 1 else "none",
            "lemmas": self.lemmas,
            "stop words": f"{self.stop.name}, {len(stop_words)} words" if stop_words else "none",
            "compounds": self.compounds,
            "stemmer": self.stemmer,
            **{f"term_fold {name}": name for name in self.term_fold},
            "synonyms": self.synonyms,
            "terms": f"{self.terms} of {self.gram_chars} characters" if self.terms != "words" else "none",
        }
        return {step: value for step, value in steps.items() if value != "none"}

    @cached_property
    def signature(self) -> str:
        """Every setting, with the versions of the libraries that carry it out; without white space.

        Python's own version is left out: str.lower, str.casefold and unicodedata.normalize give the same for every
        character of Unicode 14, the tables of Python 3.11, in all later versions of Python.
        """
        stop = "none"
        if stop_words := self.stop.words | set(self.stop_extra):  # such as nltk151+1.75812a
            stop = f"{slug(self.stop.name.split('-')[0])}{len(self.stop.words)}"
            stop += f"+{len(self.stop_extra)}" if self.stop_extra else ""
            stop += "." + hashlib.sha256("\n".join(sorted(stop_words)).encode()).hexdigest()[:6]
        tokens = self.tokens if self.tokens == "python-word" else f"{self.tokens}-regex-{version('regex')}"
        if self.tokens not in tokenisers.RULES:
            tokens = tokenisers.describe_tokeniser(self.tokens)
        parts = [
            f"lang:{self.language}",
            f"tok:{tokens}",
            f"norm:{self.normalise}",
            f"case:{self.case}",
            f"fold:{'+'.join(self.fold) or 'none'}",
            f"simplify:opencc-{require_version('opencc', 'Analysis of traditional Chinese', 'zh')}"
            if "simplified" in self.fold
            else "",
            f"elision:{'+'.join(self.elision)}" if self.elision else "",
            f"apostrophe:{self.apostrophe}" if self.apostrophe != "split" else "",
            "possessive" if self.possessive else "",
            "numbers:drop" if self.numbers == "drop" else "",
            f"min:{self.min_chars}" if self.min_chars > 1 else "",
            f"lem:{self._describe(self.lemmas)}" + (f"@{self.lemma_min_chars}" if self.lemma_min_chars > 1 else ""),
            f"compounds:{lemmas.describe_lexicon(self.compounds, self.language)}" if self.compounds != "none" else "",
            f"stem:{self._describe(self.stemmer)}"
            + ("@surface" if self.stem == "surface" else "")
            + (f"@{self.stem_min_chars}" if self.stem_min_chars > 1 else ""),
            f"termfold:{'+'.join(self.term_fold)}" if self.term_fold else "",
            f"stop:{stop}"
            + ("" if self.stop_match == "surface" else f"@{self.stop_match}")
            + ("@keep" if self.keep_only_stop_words else ""),
            f"terms:{self.terms}{self.gram_chars}" if self.terms != "words" else "",
            f"syn:{self._describe(self.synonyms)}" if self.synonyms != "none" else "",
        ]
        return "|".join(part for part in parts if part)

    def _describe(self, names: str) -> str:
        """The names with the versions of the packages and the digests of the rules that carry them out."""
        parts = []
        rules = {entry.name: entry for entry in self.rules}
        for name in names.split("+"):
            if name in rules:
                parts.append(describe_rules(rules[name]))
            elif name.startswith(SNOWBALL):
                parts.append(f"{name.replace(':', '-')}-{version('PyStemmer')}")
            else:
                parts.append(lemmas.describe_lexicon(name, self.language) if name in lemmas.LEXICONS else name)
        return "+".join(parts)


def extend_recipe(recipe: Recipe, *, stop: str | Path = "", synonyms: str | Path = "") -> Recipe:
    """Extend a recipe by a user's own stop words and synonyms.

    Args:
        recipe: The recipe of a profile; it is not changed.
        stop: A stop list: a word a line, in lower case, below a header of # lines. Its words are added to those of the
            recipe. Nothing is added if empty.
        synonyms: A file of lines such as `car, automobile` (the words become one term, in documents and queries) and
            `tv => television set` (the word is replaced). Nothing is replaced if empty.

    Returns:
        The recipe with the words. Its signature has a digest of them, which does not depend on names of files.

    Raises:
        BadInput: A file cannot be read, or a line is wrong; the message names both.

    Examples:
        >>> extend_recipe(Recipe(language="ru")) == Recipe(language="ru")
        True
    """
    if stop:
        extra = read_stop_words(Path(stop)) - recipe.stop.words - set(recipe.stop_extra)
        recipe = replace(recipe, stop_extra=(*recipe.stop_extra, *sorted(extra)))
    if synonyms:
        # The path is absolute, so that it differs from the names in language files; + separates names.
        name = f"{FILE}{Path(synonyms).resolve()}".replace("+", "_")
        names = [name for name in recipe.synonyms.split("+") if name != "none"]
        recipe = replace(
            recipe,
            synonyms="+".join([*names, name]),
            rules=(*recipe.rules, read_synonyms(name, Path(synonyms))),
        )
    return recipe


def read_stop_words(path: Path) -> frozenset[str]:
    """The words of a stop list: one a line, below a header of # lines; in NFC, in lower case and none twice."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}. A stop list is text in UTF-8, one word a line.") from error
    words: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        word = line.strip()
        if not word or line.startswith("#"):
            continue
        if word != unicodedata.normalize("NFC", word):
            raise BadInput(f"{path}:{number}: {word!r} is not in Unicode's normal form C. Save the file in NFC.")
        if word != word.lower():
            raise BadInput(f"{path}:{number}: {word!r} has capitals and would match nothing. Write it in lower case.")
        if word in words:
            raise BadInput(f"{path}:{number}: {word!r} is in line {words[word]} already. Remove one of them.")
        if len(word.split()) > 1:
            raise BadInput(f"{path}:{number}: {word!r} is more than one word. A stop list has one word a line.")
        words[word] = number
    return frozenset(words)
