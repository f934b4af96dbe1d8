"""Exports in processes of their own."""

from __future__ import annotations

import subprocess
import sys

EXPORT = """
import sys
from contextlib import closing
from docgen_core.blobs import open_blobs
from docgen_core.export import export_run, open_sink

blobs, sink, run_id, times = sys.argv[1:]
for _ in range(int(times)):
    with closing(open_sink(sink)) as target:
        export_run(run_id, blobs=open_blobs(blobs), sink=target)
"""


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors
