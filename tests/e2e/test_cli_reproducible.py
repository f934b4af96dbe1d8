"""The same order has the same bytes: one worker or four, alone or with others, wherever the clock stands."""

from __future__ import annotations

from typing import Any

ELSEWHERE = {"TZ": "America/St_Johns", "LANG": "de_DE.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "4711"}


def test_two_commands_at_once_with_four_workers_make_what_one_worker_made(
    desk: Any, corpus: Any, beforehand: tuple[str, ...], order: tuple[str, ...]
) -> None:
    """From nothing, both plan, both build the catalogue, both drain; in another time zone and another locale."""
    here = type(desk)(desk.folder, ELSEWHERE)
    if beforehand:
        here.done(*beforehand)
    both = [here.start(*order, "--workers", "2") for _ in range(2)]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    made, expected = here.digests(""), corpus.digests("")
    assert sorted(made) == sorted(expected)
    assert [key for key in expected if made[key] != expected[key]] == []
    assert len([key for key in made if key.startswith("catalogue/default/")]) > 5
    assert {"runs/r1/plan.json", "runs/r1/manifest.json", "sealed/r1", "sealed/catalogue-default"} <= set(made)
