"""The ``spscanner`` program: its commands, and its exit codes after errors."""

import atexit
import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from spscanner_rag import __version__
from spscanner_rag.apps.cli import (
    INTERRUPTED,
    batch,
    compare,
    info,
    scan,
    servers,
    verify,
)
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.apps.cli.several_values import SeveralValues
from spscanner_rag.system.torch_absence import torch_needed_for
from spscanner_rag.system.whole_files import NO_ROOM

ENTRY_POINTS = "spscanner.commands"
"""The group of entry points that add commands: each is a function of the typer app."""

_SIGNS_OF_LACK_OF_MEMORY = (
    "DefaultCPUAllocator",
    "can't allocate memory",
    "can't start new thread",
    "could not create a primitive",
)

app = typer.Typer(
    name="spscanner",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=SeveralValues, epilog=scan.JSON_LAYOUT)(scan.scan)
app.command(epilog=compare.JSON_LAYOUT)(compare.compare)
app.command(epilog=verify.EXIT_CODES)(verify.verify)
app.command(cls=SeveralValues, epilog=batch.RESULTS)(batch.batch)
app.command()(servers.serve)
app.command()(servers.mcp)
app.command()(info.info)


@cache
def program() -> Any:  # noqa: ANN401 - click's command, or typer's own copy of it
    """Return the program, with the commands that other distributions add.

    They are added when the program is first used: they import this package themselves.
    """
    for entry_point in entry_points(group=ENTRY_POINTS):
        entry_point.load()(app)
    return typer.main.get_command(app)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"spscanner {__version__}")
        raise typer.Exit


@app.callback()
def spscanner(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Read a question and a whole long document once, and score every sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program, and return its exit code.

    ``arguments`` are by default ``sys.argv[1:]``.

    0; 2 for bad input, after one line on standard error; 1 when the device is out of
    memory; 130 after Ctrl-C; 141 when the reader of a pipe closed it. Any other error
    is a bug in the program and keeps its traceback.
    """
    # Where other programs use the cores, threads that spin while they wait are several
    # times slower than a single thread. OpenMP reads this variable when torch is
    # imported, which no command has done yet.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if arguments is not None:
        return _run(arguments)
    _open_closed_streams()
    # This process is ours: the libraries' objects live until it ends, so collecting or
    # freeing them wastes time.
    gc.set_threshold(100_000, 50, 1000)
    codes: list[int] = []
    atexit.register(_end, codes)
    codes.append(_run(None))
    return codes[0]


def _open_closed_streams() -> None:
    """Open the null device in place of standard streams that are closed.

    Otherwise a file that is opened later gets the number of one of them, and what is
    written to the stream. Standard output cannot be written to, so that a result is not
    lost in silence.
    """
    modes = {
        "stdin": (os.O_RDONLY, "r"),
        "stdout": (os.O_RDONLY, "w"),
        "stderr": (os.O_WRONLY, "w"),
    }
    for name, (flags, mode) in modes.items():
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def _check_working_directory() -> None:
    """Refuse a working directory that was removed: libraries would end the process."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise ValueError(
            "the working directory was removed; expected one that exists: change to"
            " another folder (cd), and give the command again"
        ) from None


def _end(codes: Sequence[int]) -> None:
    """End the process with its exit code.

    After a bug there is no code, and the interpreter ends the process.
    """
    if codes:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(codes[0])


def _run(arguments: Sequence[str] | None) -> int:
    words = None
    if arguments is not None:
        words = list(arguments)
    try:
        _check_working_directory()
        with torch_needed_for("this command"):
            code = program().main(
                args=words,
                prog_name="spscanner",
                standalone_mode=False,
            )
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # typer turns only the first into the second
        _discard_output()
        return 141
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (ValueError, OSError, ImportError) as error:
        try:
            sys.stdout.flush()
        except OSError:  # the disk may be full
            _discard_output()
        return _fail(_message_of(error), 2)
    except Exception as error:
        return _usage_or_memory(error)
    if code == INTERRUPTED:  # newer versions of typer return it for Ctrl-C
        return _fail("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _message_of(error: Exception) -> str:
    # one of the system has two arguments; a message of ours has one, and names a file
    is_unnamed = (
        isinstance(error, OSError) and error.filename is None and len(error.args) > 1
    )
    number = getattr(error, "errno", None)
    if number == errno.EBADF:
        return (
            "standard output is closed; expected an open one: redirect it to a file, or"
            " give --out"
        )
    if is_unnamed and number in NO_ROOM:  # files that are full name themselves
        return (
            f"standard output cannot be written ({os.strerror(number)}); expected more"
            " room: redirect it to another file, or give --out"
        )
    return str(error) or type(error).__name__


def _is_lack_of_memory(error: Exception) -> bool:
    """Whether memory could not be reserved, by Python, torch or the system."""
    if isinstance(error, MemoryError):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and any(
        sign in message for sign in _SIGNS_OF_LACK_OF_MEMORY
    )


def _usage_or_memory(error: Exception) -> int:
    if _is_lack_of_memory(error):
        return _fail(
            "the memory is not enough; expected more: raise the limit (ulimit -v), or"
            " give fewer --threads or a shorter document",
            1,
        )
    # Older versions of typer raise click's usage error; newer ones raise their own
    # class.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stderr.write(f"{format_message()}\n")
            return 2
        command = getattr(getattr(error, "ctx", None), "command_path", "spscanner")
        message = str(format_message()).rstrip(".")
        if list_errors := getattr(error.__cause__, "errors", None):
            # newer versions of typer check values with pydantic, and their message
            # leaves out the given value
            got = f"got {list_errors()[0]['input']!r:.60}; expected"
            message = message.partition(", unable")[0]
            message = message.replace("Input should be", got)
            message = message.replace("Value error, ", "")
        see = ": see"
        if possibilities := getattr(error, "possibilities", None):
            message = (
                f"{getattr(error, 'message', message)}; did you mean"
                f" {' or '.join(sorted(possibilities))}?"
            )
        if message.endswith("?"):
            see = " See"
        return _fail(f"{message}{see} `{command} --help`", 2)
    # torch's class; torch is not imported for this check
    if type(error).__name__ == "OutOfMemoryError":
        return _fail(
            "the device is out of memory: lower --segment-tokens, or use --device cpu",
            1,
        )
    raise error


def _fail(message: str, code: int) -> int:
    with suppress(OSError):  # standard error may be full as well
        tell(message)
    return code


def _discard_output() -> None:
    """Send buffered output to the null device.

    Writing it when the interpreter exits would fail again.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
