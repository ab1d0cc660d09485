"""`rusbeir`: the verbs, and the one place that turns errors into one line and an exit code."""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from rusbeir import __version__
from rusbeir.cli import airbench, audit, cache, datasets, diagnose, es, interrupt, languages, output, synth
from rusbeir.cli.analyze import analyze
from rusbeir.cli.bench import bench
from rusbeir.cli.compare import compare
from rusbeir.cli.demo import demo
from rusbeir.cli.eval import evaluate
from rusbeir.cli.index import index
from rusbeir.cli.judge import judge
from rusbeir.cli.nano import nano
from rusbeir.cli.options import SPELLINGS
from rusbeir.cli.output import note
from rusbeir.cli.port import port
from rusbeir.cli.publish import publish
from rusbeir.cli.report import report
from rusbeir.cli.reproduce import reproduce
from rusbeir.cli.search import search
from rusbeir.cli.tune import tune
from rusbeir.cli.validity import validity
from rusbeir.errors import BackendError, BadInput, RusbeirError, speak_options
from rusbeir.text import make_line

logger = logging.getLogger("rusbeir")

app = typer.Typer(
    name="rusbeir",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Port English retrieval benchmarks to other languages, and measure retrievers on them.\n\n"
    "Example: rusbeir bench xquad/ru --system 'bm25(profile=rusbeir-paper)'",
)
for verb in (
    analyze,
    bench,
    compare,
    demo,
    evaluate,
    index,
    judge,
    nano,
    port,
    publish,
    report,
    reproduce,
    search,
    tune,
    validity,
):
    # The name of its module, as Python has an eval() already.
    app.command(verb.__module__.rpartition(".")[2])(verb)
for group in (airbench, audit, cache, datasets, diagnose, es, languages, synth):
    app.add_typer(group.app, name=group.__name__.rpartition(".")[2])


def _version(wanted: bool) -> None:
    if wanted:
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
    try:
        for argument in sys.argv:
            if os.fsencode(argument).decode("utf-8", "ignore") != argument:
                raise BadInput(f"{argument!r} is not UTF-8, as paths in rows and cards must be. Rename the file.")
        with interrupt.stop_soon(), speak_options(SPELLINGS):
            code = app(standalone_mode=False, prog_name="rusbeir")
            if code == interrupt.EXIT_CODE:
                # typer answers a KeyboardInterrupt with this code. Threads at work are not waited for.
                interrupt.tell()
                sys.stdout.flush()
                os._exit(code)
    except TyperException as error:
        kind, message = type(error).__name__, error.format_message()
        if kind == "NoArgsIsHelpError":
            sys.stdout.write(f"{error}\n")
            sys.exit(2)
        verb = getattr(error, "ctx", None)
        if verb and kind == "MissingParameter":
            example = re.search(r"Example: (.+)", verb.command.help or "")
            message += f" Example: {example[1]}" if example else ""
            message += f" (more: {verb.command_path} --help)"
        elif verb and verb.parent and any(option in message.split() for option in ("--quiet", "--verbose")):
            message += " Write it before the verb, as in: rusbeir --quiet bench mini/ru"
        note(f"rusbeir: {make_line(message)}")
        sys.exit(error.exit_code)
    except RusbeirError as error:
        logger.debug("the traceback of the error below", exc_info=True)
        note(f"rusbeir: {error}")
        sys.exit(1 if isinstance(error, BackendError) else 2)
    except BrokenPipeError:
        # The program that read the output has closed it (as `| head` does): there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except typer.Abort:
        note("rusbeir: aborted.")
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


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
