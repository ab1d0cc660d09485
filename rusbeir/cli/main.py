"""`rusbeir`: the verbs, and the one place that turns errors into one line and an exit code."""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_group

from rusbeir import __version__
from rusbeir.cli import airbench, audit, cache, datasets, diagnose, es, languages, output, synth
from rusbeir.cli.analyze import analyze
from rusbeir.cli.bench import bench
from rusbeir.cli.compare import compare
from rusbeir.cli.demo import demo
from rusbeir.cli.eval import evaluate
from rusbeir.cli.index import index
from rusbeir.cli.judge import judge
from rusbeir.cli.mteb import mteb
from rusbeir.cli.nano import nano
from rusbeir.cli.options import SPELLINGS
from rusbeir.cli.output import note
from rusbeir.cli.port import port
from rusbeir.cli.publish import publish
from rusbeir.cli.report import report
from rusbeir.cli.reproduce import reproduce
from rusbeir.cli.search import search
from rusbeir.cli.systems import systems
from rusbeir.cli.tune import tune
from rusbeir.cli.validity import validity
from rusbeir.errors import BackendError, BadInput, RusbeirError, Suspended, speak_options
from rusbeir.processes import end_workers
from rusbeir.text import make_line

logger = logging.getLogger("rusbeir")

SYNONYMS = {
    "analyse": "analyze",
    "convert": "port",
    "engines": "systems",
    "evaluate": "eval",
    "explain": "analyze",
    "find": "search",
    "leaderboard": "report",
    "list": "datasets",
    "measure": "bench",
    "models": "systems",
    "query": "search",
    "rate": "audit sheet",
    "run": "bench",
    "sample": "audit sheet",
    "score": "eval",
    "translate": "port",
    "upload": "publish",
}
"""What people call a verb -> the verb."""

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
_GRACE_SECONDS = 1.5
"""How long the verb may take to close its files; a call into a library would otherwise end at its own pace."""
_UNCOLLECTED = 20_000
"""New objects before Python looks for cycles of them; with the 700 of Python 3.11 a port takes a fifteenth longer."""
_INTERRUPTED_MESSAGE = "rusbeir: interrupted. Finished work is kept; run the same command again to resume it.\n"

TASKS: Mapping[str, Mapping[str, Any]] = {
    "Measure and compare": {
        "bench": bench, "search": search, "index": index, "systems": systems, "tune": tune, "eval": evaluate,
        "compare": compare, "report": report, "diagnose": diagnose.app, "validity": validity,
        "reproduce": reproduce, "airbench": airbench.app, "mteb": mteb,
    },
    "Port, check and publish": {"port": port, "audit": audit.app, "judge": judge, "publish": publish},
    "Datasets": {"datasets": datasets.app, "nano": nano, "synth": synth.app},
    "Languages": {"languages": languages.app, "analyze": analyze},
    "This machine": {"demo": demo, "es": es.app, "cache": cache.app},
}  # fmt: skip
"""Task -> its verbs, as the help shows them."""


class _Verbs(Mapping[str, Any]):
    """The command of each verb, made when it is called: to make all of them takes a tenth of a second."""

    def __init__(self) -> None:
        self._verbs = {name: verb for verbs in TASKS.values() for name, verb in verbs.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._verbs)

    def __len__(self) -> int:
        return len(self._verbs)

    def __getitem__(self, name: str) -> Any:
        verb = self._verbs[name]
        # A command remembers the options of the help that it was first asked for, so each call gets a new one.
        parent = typer.Typer(rich_markup_mode=None)
        if isinstance(verb, typer.Typer):
            parent.add_typer(verb, name=name)
        else:
            parent.command(name)(verb)
        return get_group(parent).commands[name]


VERBS = _Verbs()


class _Tasks(TyperGroup):
    """The verbs, which the help lists by task."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": VERBS})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each task."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        for task, verbs in TASKS.items():
            with formatter.section(task):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit)) for name in verbs])


app = typer.Typer(
    name="rusbeir",
    cls=_Tasks,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Port English retrieval benchmarks to other languages, and measure retrievers on them.\n\n"
    "Example: rusbeir bench xquad/ru --system 'bm25(profile=rusbeir-paper)'",
)


def _version(is_set: bool) -> None:
    if is_set:
        sys.stdout.write(f"rusbeir {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print results, warnings and errors only: no progress, no notes.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print what is reused and from where, and tracebacks of errors.")
    ] = False,
) -> None:
    """Options of the program itself, which are written before the verb."""
    output.quiet = quiet
    logger.setLevel(logging.DEBUG if verbose else logging.WARNING)
    if verbose:
        handler = logging.StreamHandler(sys.stderr)
        handler.addFilter(lambda record: record.levelno < logging.WARNING)
        handler.setFormatter(_LineFormatter("rusbeir: debug: %(message)s"))
        logger.addHandler(handler)


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 the work failed or a gate was not met, 2 the call was wrong, 130 interrupted by Ctrl-C.
    """
    _send_warnings_to_stderr()
    gc.set_threshold(_UNCOLLECTED)
    try:
        for argument in sys.argv:
            if os.fsencode(argument).decode("utf-8", "ignore") != argument:
                raise BadInput(f"{argument!r} is not UTF-8, as paths in rows and cards must be. Rename the file.")
        with stop_soon(), speak_options(SPELLINGS):
            code = app(standalone_mode=False, prog_name="rusbeir")
            if code == INTERRUPTED:
                # typer answers a KeyboardInterrupt with this code.
                sys.stdout.flush()
                _exit_interrupted()
    except TyperException as error:
        kind, message = type(error).__name__, error.format_message()
        if kind == "NoArgsIsHelpError":
            sys.stdout.write(f"{error}\n")
            sys.exit(2)
        verb = getattr(error, "ctx", None)
        if verb and kind == "MissingParameter":
            message = _list_missing(verb) or message
            example = re.search(r"Example: (.+)", verb.command.help or "")
            message += f" Example: {example[1]}" if example else ""
            message += f" (more: {verb.command_path} --help)"
        elif (command := re.fullmatch(r"No such command '(\w+)'\.", message)) and command[1] in SYNONYMS:
            message += f" Did you mean 'rusbeir {SYNONYMS[command[1]]}'?"
        elif verb and verb.parent and any(option in message.split() for option in ("--quiet", "--verbose")):
            message += " Write it before the verb, as in: rusbeir --quiet bench mini/ru"
        note(f"rusbeir: {make_line(message)}")
        sys.exit(error.exit_code)
    except Suspended as pause:
        note(str(pause))
        sys.exit(0)
    except RusbeirError as error:
        logger.debug("the traceback of the error below", exc_info=True)
        note(f"rusbeir: {error}")
        sys.exit(1 if isinstance(error, BackendError) else 2)
    except BrokenPipeError:
        # The program that read the output has closed it (as `| head` does): there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        # Whatever was made of a path that the system refuses, such as a name of more than 255 bytes.
        logger.debug("the traceback of the error below", exc_info=True)
        note(
            f"rusbeir: {make_line(f'Cannot use {os.fsdecode(error.filename)}: {error.strerror}. Choose another path.')}"
        )
        sys.exit(2 if error.errno == errno.ENAMETOOLONG else 1)
    except MemoryError as error:
        logger.debug("the traceback of the error below", exc_info=True)
        note(f"rusbeir: {make_line(f'This needs more memory than there is ({error}). Give it more, or less to do.')}")
        sys.exit(1)
    except typer.Abort:
        note("rusbeir: aborted.")
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _list_missing(verb: Any) -> str:
    """A sentence that names all arguments and options that a call of the verb lacks; "" where it lacks one alone."""
    words = sys.argv[sys.argv.index(verb.info_name) + 1 :] if verb.info_name in sys.argv else []
    values, _, _ = verb.command.make_parser(verb).parse_args(list(words))
    missing = [
        parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar or parameter.name.upper()
        for parameter in verb.command.params
        if parameter.required and not values.get(parameter.name)
    ]
    return f"Missing: {', '.join(missing)}." if len(missing) > 1 else ""


def _send_warnings_to_stderr() -> None:
    """Print the package's warnings, one plain line each; logs of other libraries are left alone."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_LineFormatter("rusbeir: warning: %(message)s"))
    logger.handlers = [handler]
    logger.propagate = False


class _LineFormatter(logging.Formatter):
    """A record as one printable line, with its traceback: both may quote names, ids and answers from elsewhere."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = make_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return output.escape(super().formatException(ei))


@contextlib.contextmanager
def stop_soon() -> Iterator[None]:
    """Within it, SIGINT raises KeyboardInterrupt, and ends the process if it still runs after _GRACE_SECONDS.

    Ending it is as safe as a kill: files appear when they are complete, and journals are committed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    # Python's own handlers wait for the main thread, which may be in a library; this descriptor does not.
    wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_watch, args=(reading,), daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(wakeup)
        writing.close()


def _exit_interrupted() -> NoReturn:
    """Say on stderr what is kept, and end this process with its workers; threads at work are not waited for."""
    try:
        with contextlib.suppress(OSError, ValueError):
            # A bar that could not be closed leaves its line and a hidden cursor.
            sys.stderr.write(("\r\x1b[K\x1b[?25h" if sys.stderr.isatty() else "") + _INTERRUPTED_MESSAGE)
            sys.stderr.flush()
        end_workers()
    finally:
        os._exit(INTERRUPTED)


def _watch(reading: socket.socket) -> None:
    """End the process _GRACE_SECONDS after a SIGINT; return when the other end is closed."""
    while received := reading.recv(1):
        if received[0] == signal.SIGINT:
            time.sleep(_GRACE_SECONDS)
            _exit_interrupted()
    reading.close()
