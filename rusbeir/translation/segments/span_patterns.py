"""The patterns of strings that are protected from translation. None takes more than linear time.

Each begins only where a token can begin (a lookbehind) or at a rare character, and each repeat is possessive or has
an upper bound, so that a start that leads nowhere costs little and no stretch is read again from every place in it.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class SpanPattern(NamedTuple):
    """A pattern of one kind of protected strings."""

    kind: str
    chars: frozenset[str]
    """A text without any of these is not searched."""
    pattern: re.Pattern[str]
    trigger: re.Pattern[str] | None = None
    """A cheap search that must succeed for the pattern to be tried."""
    trailing: bool = False
    """Whether punctuation at the end belongs to the sentence: "(see https://a.org/b)."."""


def _any(*alternatives: str, before: str = "") -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(alternatives)})")


def _names(names: str) -> str:
    """Alternatives, the longest first."""
    return "|".join(re.escape(name) for name in sorted(names.split(), key=len, reverse=True))


_DOMAINS = _names("com org net edu gov mil int io info biz eu ru su de uk fr es pt br it nl pl cn jp ua kz ch at ca au")
_FILES = _names(
    "py ipynb js mjs ts jsx tsx java cc cpp hpp cs go rs rb php pl sh bat ps1 f90 sql html htm xhtml xml xsd "
    "css scss json jsonl yaml yml toml ini cfg conf md rst txt csv tsv log tex bib pdf doc docx xls xlsx ppt pptx odt "
    "ods odp epub png jpg jpeg gif svg bmp tif tiff webp mp3 mp4 wav ogg flac avi mkv mov zip gz bz2 xz 7z tar rar jar "
    "war exe dll so dylib deb rpm dmg iso bin dat db sqlite parquet lock env"
)
_UNITS = _names(
    "% ‰ ° °C °F kg g mg µg μg ng pg t lb lbs oz km m dm cm mm µm μm nm pm Å mi ft km² m² cm² mm² m³ cm³ mm³ ha "
    "l L ml mL dl dL µl μl µL μL nl nL cc s ms µs μs ns ps h hr hrs min Hz kHz MHz GHz THz W kW MW GW TW kWh MWh GWh "
    "Wh mW V kV mV µV μV mA µA μA kA mAh Ah Ω kΩ MΩ J kJ MJ cal kcal eV keV MeV GeV TeV N kN Pa kPa hPa MPa GPa bar "
    "mbar psi atm mmHg Torr mol mmol µmol μmol nmol pmol fmol mM µM μM nM pM IU mIU kU Da kDa MDa bp kb kbp Mb Mbp Gb "
    "KB kB MB GB TB PB KiB MiB GiB TiB kbps Mbps Gbps ppm ppb ppt dB dBm rpm px dpi fps mAs mSv µSv Gy mGy Bq kBq MBq "
    "lx lm cd sr rad mrad mph kph km/h kcal/mol mEq mOsm cfu CFU wt% vol% at% € £ ¥ ₽ ₴ ₸ USD EUR GBP RUB CNY JPY"
)
_SPACE = r"[ \u00a0\u2009\u202f]?"
_SIGN = r"[±~≈<>≤≥+−-]?"
_NUMBER = r"[0-9]++(?:[.,\u00a0\u202f'’][0-9]++)*+"
_SHORT_NUMBER = r"[0-9]{1,20}(?:[.,][0-9]{1,20})?"
_RANGE = rf"(?:{_SPACE}[-–—−±]{_SPACE}{_NUMBER})?"
_POWER = r"(?:\^\{[-−+]?[0-9]{1,4}\}|\^[-−+]?[0-9]{1,4}|[⁻⁺]?[⁰¹²³⁴-⁹]{1,4})"
_TIMES_TEN = rf"{_SPACE}[×x*·⋅]{_SPACE}10(?:{_POWER}|[-−][0-9]{{1,3}}(?![0-9]))"
_UNIT = rf"(?:{_UNITS})(?:\^[-−]?[0-9]|⁻?[¹²³]|[-−][1-3](?![0-9])|(?<=m)[23](?![0-9]))?"
_UNITS_OF_UNITS = rf"{_UNIT}(?:[/·⋅*]{_UNIT}|[ ]{_UNIT}(?<=[-−⁻][123¹²³])){{0,3}}"
# Not \w: Chinese and Japanese put their characters next to a number or an address without a space.
_LETTERS = "A-Za-zÀ-ӿ"
_NOT_IN_WORD = rf"(?<![0-9_{_LETTERS}])"
_WORD_ENDS = rf"(?![0-9{_LETTERS}])"

_QUANTITY = _any(
    rf"{_SIGN}{_NUMBER}{_RANGE}(?:{_TIMES_TEN})?{_SPACE}{_UNITS_OF_UNITS}{_WORD_ENDS}",
    rf"{_SIGN}{_NUMBER}{_TIMES_TEN}",
    rf"{_SIGN}{_SHORT_NUMBER}{_POWER}",
    rf"{_SIGN}{_SHORT_NUMBER}[eE][+−-]?[0-9]{{1,4}}{_WORD_ENDS}",
    rf"(?:US|CA?|AU?|HK|NZ|R)?[$€£¥₽₴₸₹]{_SPACE}{_NUMBER}{_RANGE}(?![0-9{_LETTERS}$])",
    before=rf"(?=[-±~≈<>≤≥+−0-9$€£¥₽₴₸₹UCAHNR]){_NOT_IN_WORD}(?<![0-9][.,\u00a0\u202f'’])",
)
_NAMED = _any(
    r"(?:PMID|PMCID|PubMed ID)(?::\s?|\s)(?:PMC)?[0-9]{1,9}",
    r"PMC[0-9]{3,9}",
    r"ISBN(?:-1[03])?:?\s?(?:[0-9][ -]?){9,12}[0-9Xx]",
    r"ISSN:?\s?[0-9]{4}-[0-9]{3}[0-9Xx]",
    r"[aA]r[xX]iv:\s?(?:[0-9]{4}\.[0-9]{4,5}|[a-z-]{2,10}(?:\.[A-Z]{2})?/[0-9]{7})(?:v[0-9]{1,2})?",
    r"(?:CVE|CWE)-[0-9][0-9-]{0,20}(?<!-)",
    r"(?:RFC|ISO|IEC|IEEE|DIN|GOST)(?:/IEC)?[- ]?[0-9][0-9.:-]{0,20}(?<![.:-])",
    r"(?:NCT|GSE|GSM|SRR|SRP|ENSG|ENST)[0-9]{3,12}",
    r"(?:GO|CHEBI|HGNC|OMIM|MESH|MeSH|KEGG|PDB|ORCID|EC|CAS|DB|HP|DOID|MONDO):\s?[A-Z]?[0-9][0-9A-Z.-]{0,24}(?<![.-])",
    before=r"(?=[PIaACRDGNSEOHMK])(?<![\w.-])",
)
_CODED = _any(
    r"(?:rs|ss)[0-9]{3,12}",
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    r"(?=[a-fA-F]{0,64}[0-9])(?=[0-9]{0,64}[a-fA-F])(?:[0-9a-fA-F]{128}|[0-9a-fA-F]{64}|[0-9a-fA-F]{40}|[0-9a-fA-F]{32})",
    r"0x[0-9a-fA-F]{1,64}",
    r"[vV]?[0-9]{1,9}(?:\.[0-9]{1,9}){2,9}(?:-?(?:rc|alpha|beta|dev|post|a|b)\.?[0-9]{0,4})?",
    r"[vV][0-9]{1,4}\.[0-9]{1,4}",
    before=r"(?=[rsvV0-9a-fA-F])(?<![\w.-])(?=[0-9A-Za-z-]{1,40}?[0-9])",
)
_DIGITS = frozenset("0123456789")
# A number that may be part of an identifier or a quantity, by the characters around it. Of the alternatives the first
# three are what may follow a digit, the others what may come before it: re skips to the first character of a pattern.
_NUMBER_WITH_MORE = re.compile(
    rf"[$€£¥₽₴₸₹0-9](?:[^\s.,;:!?)\]\"'’”»0-9]|[.-][0-9A-Za-z]|[ \u00a0\u2009\u202f](?:{_UNITS}|[-–—−±×x*·⋅])"
    r"|(?<=[$€£¥₽₴₸₹])|(?<=[A-Za-z:/-].)|(?<=[A-Z:]\s.))"
)
_ADDRESS = r"[^\s<>\"`{}|\\^«»“”、。，；：！？（）「」『』【】]{1,8000}+"

SPAN_PATTERNS = (
    SpanPattern(
        "url",
        frozenset(":"),
        re.compile(rf"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+-]{{1,12}}+://|mailto:){_ADDRESS}"),
        re.compile(r":(?://|(?<=mailto:))"),
        trailing=True,
    ),
    SpanPattern(
        "url", frozenset("."), re.compile(rf"(?<![A-Za-z0-9])www\.{_ADDRESS}"), re.compile(r"www\."), trailing=True
    ),
    SpanPattern(
        "url",
        frozenset("."),
        re.compile(
            rf"(?=[A-Za-z0-9])(?<![\w@./-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,62}}+)\.){{1,5}}(?:{_DOMAINS})(?![\w-]|\.\w)"
            r"(?:/[^\s<>\"`{}|\\^«»“”]{0,2000}+)?"
        ),
        re.compile(rf"\.(?:{_DOMAINS})(?!\w)"),
        trailing=True,
    ),
    SpanPattern(
        "email",
        frozenset("@"),
        re.compile(
            r"(?<![A-Za-z0-9.+%_-])(?:[A-Za-z0-9_][A-Za-z0-9.+%_-]{0,63}+@(?:[A-Za-z0-9-]{1,63}+\.){1,6}[A-Za-z]{2,24}"
            r"|@[A-Za-z0-9_]{2,30})(?![A-Za-z0-9_])"
        ),
    ),
    SpanPattern(
        "doi",
        frozenset("/"),
        re.compile(r"(?=[dD1])(?<![\w.])(?:(?:doi|DOI)(?::\s?|\s))?10\.[0-9]{4,9}/[^\s<>\"«»“”，。；]{1,500}+"),
        re.compile(r"10\.[0-9]{4}"),
        trailing=True,
    ),
    SpanPattern("identifier", _DIGITS, re.compile(rf"{_NAMED.pattern}{_WORD_ENDS}"), _NUMBER_WITH_MORE),
    SpanPattern("identifier", _DIGITS, re.compile(rf"{_CODED.pattern}{_WORD_ENDS}"), _NUMBER_WITH_MORE),
    SpanPattern("reference", frozenset("["), re.compile(r"\[[0-9]{1,4}(?:\s?[,;–-]\s?[0-9]{1,4}){0,30}\]")),
    SpanPattern("quantity", _DIGITS, _QUANTITY, _NUMBER_WITH_MORE),
    SpanPattern(
        "latex",
        frozenset("$\\"),
        _any(
            # As pandoc reads it, and not from one sum to the next: "costs $5 and $6", "$5 million, 3 in US$".
            r"(?<![\\$\w])\$(?![\s$/]|[0-9][0-9.,–-]{0,20}[\s-]?[^\W\d_]{3})[^$\n]{1,1000}+(?<=[^\s\\(])(?<!US)\$(?![0-9$])",
            r"\\(?:[A-Za-z]{0,10}cite|[A-Za-z]{0,10}ref|label|url|href|include|input|usepackage)[A-Za-z]{0,12}\*?"
            r"(?:\[[^\]\n]{0,200}+\]){0,2}\{[^{}\n]{0,500}+\}",
            r"\\[A-Za-z]{1,40}+\*?(?:\{[^{}\s]{0,100}+\}){0,8}+",
            r"\\[$%&#_{}~^\\,;!]",
        ),
    ),
    SpanPattern("code", frozenset("`"), re.compile(r"`[^`\n]{1,500}+`")),
    SpanPattern(
        "code",
        frozenset("{"),
        _any(r"\{\{[^{}\n]{1,200}+\}\}", r"[$#]?\{[A-Za-z0-9_.:!]{0,60}+\}", before=r"(?=[{$#])"),
    ),
    SpanPattern(
        "code", frozenset("%"), re.compile(r"%(?<![\w%]%)(?:\([A-Za-z0-9_]{1,40}\))?[0-9.]{0,6}[sdifr](?![\w])")
    ),
    SpanPattern(
        "code",
        frozenset("_"),
        re.compile(r"(?<!\w)_{0,2}[A-Za-z0-9]++(?:_++[A-Za-z0-9]++)++_{0,2}(?:\(\))?(?!\w)"),
    ),
    SpanPattern(
        "code",
        frozenset(")"),
        re.compile(r"(?<![\w.])[A-Za-z_](?:[A-Za-z0-9_.]{0,80}+)\(\)(?!\w)"),
        re.compile(r"\(\)"),
    ),
    SpanPattern(
        "path",
        frozenset("/"),
        re.compile(r"(?=[~./])(?<![\w/.<:+-])(?:~|\.{1,2})?/(?:[\w.@][\w.@+-]{0,100}+/){1,30}+[\w.@+-]{0,100}+"),
        trailing=True,
    ),
    SpanPattern("path", frozenset("\\"), re.compile(r"(?<!\w)[A-Za-z]:\\[^\s\"<>|?*:;,]{0,400}+"), trailing=True),
    SpanPattern(
        "path",
        frozenset("."),
        re.compile(
            r"(?=[\w.~])(?<![\w/.\\@-])(?:[\w.@~][\w.@~-]{0,100}+[/\\]){0,30}+(?:[\w-]{1,100}+\.){1,3}"
            rf"(?:{_FILES})(?![\w.-]?\w)"
        ),
        re.compile(rf"\.(?:{_FILES})(?!\w)"),
    ),
    SpanPattern(
        "tag",
        frozenset("<"),
        _any(
            r"<[!?][A-Za-z][^<>]{0,1000}+>",
            r"</?[A-Za-z][\w:.-]{0,60}+"
            r"(?:\s++[\w:@.-]{1,60}+\s?=\s?(?:\"[^\"<>]{0,2000}+\"|'[^'<>]{0,2000}+'|[^\s\"'<>=]{1,500}+)){0,40}+\s*+/?>",
        ),
    ),
    SpanPattern(
        "entity", frozenset("&"), re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,31}[0-9]{0,2});")
    ),
)
"""Unordered. Overlaps are resolved leftmost-longest."""


class Pair(NamedTuple):
    """A kind of protected string: anything between an opening and a closing mark."""

    kind: str
    opens: str
    closes: str


PAIRS = (
    Pair("tag", "<!--", "-->"),
    Pair("tag", "<![CDATA[", "]]>"),
    Pair("code", "```", "```"),
    Pair("code", "``", "``"),
    Pair("latex", "$$", "$$"),
    Pair("latex", "\\(", "\\)"),
    Pair("latex", "\\[", "\\]"),
)
MAX_PAIR_CHARS = 5_000
"""Marks further apart than this are taken for two stray ones."""

ENVIRONMENT = re.compile(r"\\(begin|end)\{[A-Za-z]{1,20}\*?\}")
"""Opens or closes a LaTeX environment; they may nest."""
