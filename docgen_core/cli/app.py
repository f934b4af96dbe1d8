"""The command tree, and how an error becomes one line and an exit code.

Exit codes: 0 done (or nothing to claim, or paused), 1 damage or a score that is too low, 2 wrong use, 3 not complete,
4 cancelled, 130 and 143 signalled with the leases handed back, 141 nobody reads what is said.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import click
import typer

from docgen_core import __version__
from docgen_core.cli import doctor, manage, observe, produce, score
from docgen_core.errors import DocgenError

app = typer.Typer(
    name="docgen",
    help="Synthetic business documents with their golden set: every printed value, exact, with its box on the page.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
catalogue = typer.Typer(help="Companies and what they sell.", no_args_is_help=True)
app.add_typer(catalogue, name="catalogue", rich_help_panel="Make")

_COMMANDS: dict[str, dict[str, Callable[..., int]]] = {
    "Make": {"init": manage.init, "plan": produce.plan, "work": produce.work, "generate": produce.generate},
    "Look": {
        "status": observe.status,
        "failures": observe.failures,
        "spend": observe.spend,
        "verify": observe.verify,
        "show": observe.show,
        "doctor": doctor.doctor,
    },
    "Steer": {
        "pause": manage.pause,
        "resume": produce.resume,
        "cancel": manage.cancel,
        "budget": manage.budget,
        "lift": manage.lift,
        "withdraw": manage.withdraw,
        "gc": manage.collect_garbage,
    },
    "Use": {"export": manage.export, "score": score.score},
}
for panel, commands in _COMMANDS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)
catalogue.command("build")(produce.build_catalogue)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"docgen {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command line; never shows a traceback for what a user can meet."""
    try:
        code = app(standalone_mode=False)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            error.show()
            sys.exit(error.exit_code)
        _leave(error.format_message(), 2, context.command_path if context else "docgen")
    except (click.Abort, KeyboardInterrupt):
        _leave("interrupted", 130)
    except DocgenError as error:
        _leave(str(error), error.exit_code)
    except OSError as error:
        place = f" at {error.filename}" if error.filename else ""
        _leave(f"the system refused{place}: {error.strerror or error}; make room, fix the rights or the path", 3)
    sys.exit(code if isinstance(code, int) else 0)


def _leave(message: str, code: int, command: str = "docgen") -> NoReturn:
    if message:
        line = " ".join(message.split())
        print(f"{command}: {line}", file=sys.stderr)  # noqa: T201  the one place where an error is told
    sys.exit(code)
