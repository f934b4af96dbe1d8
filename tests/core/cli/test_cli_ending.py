"""How a command ends: which exit code an error has, and that it is told in one line."""

from __future__ import annotations

import errno
from typing import Any

import click
import pytest
import typer

from docgen_core import errors
from docgen_core.cli import app as command_line
from docgen_core.errors import DocgenError

ENDINGS: dict[BaseException, tuple[int, str]] = {
    errors.UsageError("not so"): (2, "docgen: not so"),
    errors.StorageFailed("no space\n  on  it"): (3, "docgen: no space on it"),
    errors.RunIncomplete("r1", range(12), "go on"): (
        3,
        "docgen: run 'r1' is not complete (units 0, 1, 2, 3, 4, 5, 6, 7, …): go on",
    ),
    errors.Damage("changed"): (1, "docgen: changed"),
    errors.RunCancelled("r1"): (4, "docgen: run 'r1' was cancelled"),
    errors.ReaderLeft(): (141, ""),
    KeyboardInterrupt(): (130, ""),
    click.Abort(): (130, "docgen: interrupted"),
    OSError(errno.ENOSPC, "No space left on device", "/data/x"): (
        3,
        "docgen: the system refused at /data/x: No space left on device; make room, fix the rights or the path",
    ),
    PermissionError(errno.EACCES, "Permission denied"): (
        3,
        "docgen: the system refused: Permission denied; make room, fix the rights or the path",
    ),
    typer.Exit(3): (3, ""),
}


@pytest.mark.parametrize("error", ENDINGS, ids=lambda error: type(error).__name__)
def test_an_error_is_one_line_and_its_exit_code(
    docgen: Any, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = typer.Typer()

    @broken.command()
    def break_() -> None:
        raise error

    monkeypatch.setattr(command_line, "app", broken)
    code, line = ENDINGS[error]
    ended = docgen()
    assert (ended.code, ended.err.rstrip("\n"), ended.out) == (code, line, "")


def test_what_nobody_foresaw_is_a_bug_and_keeps_its_traceback(docgen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = typer.Typer(pretty_exceptions_enable=False)

    @broken.command()
    def break_() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(command_line, "app", broken)
    with pytest.raises(ZeroDivisionError):
        docgen()


def test_every_error_of_the_interface_has_an_exit_code_of_the_list() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DocgenError)]
    assert len(kinds) > 15
    assert {kind.exit_code for kind in kinds} == {1, 2, 3, 4, 141}


COMMANDS = (
    *("init", "plan", "work", "generate", "status", "failures", "spend", "verify", "show", "doctor"),
    *("pause", "resume", "cancel", "withdraw", "gc", "export", "catalogue"),
)


class TestHelp:
    def test_lists_every_command(self, docgen: Any) -> None:
        said = docgen("--help")
        assert said.code == 0
        assert all(f" {command} " in said.out for command in COMMANDS)

    @pytest.mark.parametrize("command", [*COMMANDS, "catalogue build"])
    def test_of_a_command_says_what_it_does_and_what_its_options_do(self, docgen: Any, command: str) -> None:
        said = docgen(*command.split(), "--help", COLUMNS="200")
        assert said.code == 0 and f"docgen {command}" in said.out and said.err == ""

    def test_names_the_variables_that_stand_for_flags(self, docgen: Any) -> None:
        said = docgen("generate", "--help", COLUMNS="200").out + docgen("export", "--help", COLUMNS="200").out
        assert all(name in said for name in ("DOCGEN_STATE", "DOCGEN_BLOBS", "DOCGEN_CATALOGUE", "DOCGEN_SINK"))

    def test_is_what_no_words_at_all_get(self, docgen: Any) -> None:
        said = docgen()
        assert said.code == 2 and "Usage: docgen" in said.out + said.err
