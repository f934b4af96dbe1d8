"""Who a worker is: a name for logs and rows. It never decides who works on what.

A new process under an old name is a new owner, so every name ends in something of its own.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping


def worker_identity(environ: Mapping[str, str] | None = None) -> str:
    """The platform's name for this task where there is one, else the host; then process and a random tail."""
    here = os.environ if environ is None else environ
    return f"{_platform_task(here) or socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


def _platform_task(environ: Mapping[str, str]) -> str | None:
    if index := environ.get("CLOUD_RUN_TASK_INDEX"):
        execution = environ.get("CLOUD_RUN_EXECUTION", "cloud-run")
        return f"{execution}.{index}.{environ.get('CLOUD_RUN_TASK_ATTEMPT', '0')}"
    if metadata := environ.get("ECS_CONTAINER_METADATA_URI_V4"):
        return f"ecs.{metadata.rstrip('/').rpartition('/')[2]}"
    if "KUBERNETES_SERVICE_HOST" in environ and (pod := environ.get("HOSTNAME")):
        return f"pod.{pod}"
    return None
