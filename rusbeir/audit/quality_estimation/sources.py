"""The names that `--qe` takes, and the quality estimations that they mean."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rusbeir.audit.port_checks.measurement import RecordFile
from rusbeir.audit.quality_estimation.estimators import (
    Estimate,
    NamedQuality,
    OpensEstimator,
    Pairs,
    SegmentQuality,
    estimate_all,
)
from rusbeir.audit.quality_estimation.programs import Program, make_worker
from rusbeir.audit.quality_estimation.score_file import ScoreFile
from rusbeir.audit.quality_estimation.segment_scores import name_scores
from rusbeir.errors import BadInput, option, unknown
from rusbeir.jobs import Journal
from rusbeir.text import shorten
from rusbeir.types import Progress
from rusbeir.user_sources import PYTHON, digest_sources, import_function, report_failure

JOURNAL = "qe.sqlite"
COMMAND = "command:"
"""Begins a program that speaks the lines of programs.py."""
INTERPRETER = "RUSBEIR_QE_PYTHON"
"""The Python of the environment in which the models' packages are; an option `python` comes first."""
_LABEL = re.compile(r"([A-Za-z][\w.-]*)=(.+)", re.DOTALL)
_MODEL = re.compile(r"([a-z0-9-]+)(?:\((.*)\))?")
_NOT_IN_NAME = re.compile(r"[^\w.+-]+")


def _make_comet(options: dict[str, str]) -> Program:
    return make_worker("comet_worker.py", options["python"], options["model"], options["devices"])


def _make_metricx(options: dict[str, str]) -> Program:
    return make_worker(
        "metricx_worker.py", options["python"], options["model"], options["tokenizer"], options["repository"]
    )


@dataclass(frozen=True)
class _Model:
    """A known model: what starts its worker, and the options with their usual values."""

    make: Callable[[dict[str, str]], Program]
    options: dict[str, str]


MODELS = {
    "cometkiwi": _Model(_make_comet, {"model": "Unbabel/wmt22-cometkiwi-da", "devices": "0"}),
    "metricx": _Model(
        _make_metricx,
        {"model": "google/metricx-24-hybrid-large-v2p6", "tokenizer": "google/mt5-xl", "repository": "metricx"},
    ),
    "xcomet": _Model(_make_comet, {"model": "Unbabel/XCOMET-XL", "devices": "0"}),
}


@runtime_checkable
class Signed(Protocol):
    """A function with an attribute that says what decides its scores; without it, its source code does."""

    signature: str


@dataclass(frozen=True)
class PythonEstimator:
    """function(pairs, source, target) -> one score for each pair; see Estimator."""

    name: str

    @contextlib.contextmanager
    def open(self, source: str, target: str) -> Iterator[_OpenFunction]:
        """Import the function. Raises BadInput where there is none."""
        function, module = import_function(self.name)
        identity = function.signature if isinstance(function, Signed) else f"source:{digest_sources(module)}"
        yield _OpenFunction(self.name, function, f"{self.name}|{''.join(str(identity).split())}", source, target)


@dataclass(frozen=True)
class _OpenFunction:
    name: str
    function: Callable[..., Any]
    signature: str
    source: str
    target: str

    def estimate(self, pairs: Pairs) -> Estimate:
        """Call the function. Raises BackendError where it fails."""
        try:
            scores: Estimate = self.function(list(pairs), self.source, self.target)
        except Exception as error:
            raise report_failure(self.name, "scores translations", error) from error
        # Such as an array.
        return scores if isinstance(scores, Sequence) or not hasattr(scores, "tolist") else scores.tolist()


@dataclass(frozen=True)
class QualitySource:
    """A source that one `--qe` names."""

    name: str
    """The name in reports and gates."""
    source: Path | OpensEstimator


def parse_sources(texts: Sequence[str]) -> list[QualitySource]:
    """Parse what each text names: a file of scores, a known model, python:module.function, or command:PROGRAM.

    Each may begin with a name of its own, as in `kiwi=scores.tsv`. Raises UnknownName for anything else, and BadInput
    for a name that is there twice.
    """
    sources = [_parse(text.strip()) for text in texts]
    names = [source.name for source in sources]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput(
            f"{option('qe')}: {twice[0]!r} is there twice. Name what scores differently, as in "
            f"{twice[0]}-2={texts[names.index(twice[0])]}."
        )
    return sources


def _parse(text: str) -> QualitySource:
    label = None
    if not Path(text).exists() and (match := _LABEL.fullmatch(text)):
        label, text = match[1].lower(), match[2].strip()
    if text.startswith(PYTHON):
        return QualitySource(label or _clean(text.rpartition(".")[2]), PythonEstimator(text))
    if text.startswith(COMMAND):
        program = Program.from_words(text.removeprefix(COMMAND))
        return QualitySource(label or _clean(Path(program.command[-1]).stem), program)
    if (match := _MODEL.fullmatch(text)) and match[1] in MODELS:
        return QualitySource(label or match[1], _make_model(match[1], match[2] or ""))
    path = Path(text).expanduser()
    if path.is_file():
        return QualitySource(label or _clean(name_scores(path)), path)
    raise unknown("quality estimation", text, [*MODELS, f"{PYTHON}module.function", f"{COMMAND}PROGRAM", "FILE"])


def _make_model(name: str, text: str) -> Program:
    """Make the worker of a known model. Raises BadInput for an option that it does not have."""
    model = MODELS[name]
    options = {**model.options, "python": os.environ.get(INTERPRETER) or sys.executable}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in options:
            known = ", ".join(sorted(options))
            raise BadInput(f"{option('qe', name)} has no option {shorten(repr(part))}. Available: {known}.")
        options[key] = str(Path(value).expanduser()) if value.startswith("~") else value
    if not options.get("devices", "0").isdecimal():
        raise BadInput(f"{option('qe', name)} needs devices to be a number of cards, not {options['devices']!r}.")
    return model.make(options)


def _clean(name: str) -> str:
    """Return the name as gates can use it."""
    return _NOT_IN_NAME.sub("-", name.lower()).strip("-.") or "qe"


def open_quality(
    sources: Sequence[QualitySource],
    records: RecordFile,
    languages: tuple[str, str],
    folder: Path,
    stack: contextlib.ExitStack,
    progress: Progress,
) -> list[NamedQuality]:
    """Read the files, and let the estimators score all segments; answers are kept in qe.sqlite in the folder.

    The journal is open as long as the stack. Raises BadInput for a file of other segments, and BackendError for an
    estimator that fails; what it has scored is kept.
    """
    journal = None
    opened = []
    for named in sources:
        quality: SegmentQuality
        if isinstance(named.source, Path):
            quality = ScoreFile.read(named.source, records.n_segments)
        else:
            if journal is None:
                meta = {"from": languages[0], "to": languages[1]}
                journal = stack.enter_context(Journal.open(folder / JOURNAL, meta))
            with named.source.open(*languages) as estimator:
                quality = estimate_all(estimator, records, journal, named.name, progress)
        opened.append(NamedQuality(named.name, quality))
    return opened
