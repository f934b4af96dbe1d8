"""A network that fails: a TCP proxy in front of a server, which breaks requests by a seeded plan.

It passes bytes, whatever they mean, and of their meaning knows only where a request begins and when it
is answered, in HTTP/1.1 and in HTTP/2 (which gRPC speaks, many requests to a connection). The n-th
request that comes meets what the plan has at n; the same seed is the same plan.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum

CHUNK_BYTES = 1 << 16
HELD_BYTES = 1 << 15
"""An answer longer than this counts as given before its end: who is not let have it asks for no more of it."""
DRIPS, DRIP_SECONDS = 25, 0.01

_REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|PATCH|DELETE) ")
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _END_STREAM = 0, 1, 1
_ONLY = 0
"""The stream of a connection that has one request at a time."""


class Fault(StrEnum):
    """What a request meets. All but the last end the connection, and all that is under way on it."""

    UNSENT = "reset before the server had it"
    CUT = "reset in its midst"
    UNANSWERED = "carried out, and reset before the answer passed"
    HALF_ANSWERED = "carried out, and reset in the midst of the answer"
    SILENT = "black hole"
    DRIPPING = "answer that drips"


@dataclass(frozen=True)
class Plan:
    """Which request meets which fault, decided by its number alone."""

    seed: int
    share: float
    """Of requests that meet one."""
    weights: Mapping[Fault, int]
    silent_seconds: float | None
    """How long a black hole lasts before the connection ends; None: until the client gives up."""

    def fault(self, number: int) -> Fault | None:
        chance = random.Random(f"{self.seed} {number}")
        if chance.random() >= self.share:
            return None
        return chance.choices(list(self.weights), list(self.weights.values()))[0]


class BadNetwork:
    """The proxy. Counts what it did to whom."""

    def __init__(self, upstream: int, plan: Plan) -> None:
        self.upstream, self.plan = upstream, plan
        self.port = 0
        self.requests = 0
        self.struck: Counter[Fault] = Counter()
        """Faults that requests have met."""

    def next_fault(self) -> Fault | None:
        self.requests += 1
        return self.plan.fault(self.requests)

    async def serve(self, listening: threading.Event, over: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = int(server.sockets[0].getsockname()[1])
        listening.set()
        await over.wait()
        server.close()

    async def _connected(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            server, to_server = await asyncio.open_connection("127.0.0.1", self.upstream)
            await _Link(self, client, to_client, server, to_server).carry()
        to_client.close()


class _Reset(Exception):
    """The connection is to break off, on both sides."""


class _Link:
    """One client's connection and the one made for it to the server."""

    def __init__(
        self,
        network: BadNetwork,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        self.network = network
        self.client, self.to_client, self.server, self.to_server = client, to_client, server, to_server
        self.requests = self.answers = _Frames()
        self.speaks_frames = False
        self.doomed: tuple[Fault, int] | None = None
        """The fault that waits for an answer, and the answer's stream."""
        self.held = 0

    async def carry(self) -> None:
        ways = [asyncio.create_task(self._carry_requests()), asyncio.create_task(self._carry_answers())]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            broken = any(isinstance(way.exception(), _Reset | OSError) for way in done)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        for side in (self.to_client, self.to_server):
            if broken:
                side.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                side.transport.abort()
            side.close()

    async def _carry_requests(self) -> None:
        first = True
        while data := await self.client.read(CHUNK_BYTES):
            if first and data.startswith(_PREFACE[: len(data)]):
                self.speaks_frames, self.requests, self.answers = True, _Frames(len(_PREFACE)), _Frames()
            first = False
            for stream in self._begun(data):
                fault = self.network.next_fault()
                if fault is not None and self.doomed is None:
                    await self._strike(fault, stream, data)
            self.to_server.write(data)
            await self.to_server.drain()

    async def _strike(self, fault: Fault, stream: int, data: bytes) -> None:
        self.network.struck[fault] += 1
        if fault is Fault.CUT:
            self.to_server.write(data[: len(data) // 2])
            await self.to_server.drain()
        self.doomed = fault, stream
        if fault is Fault.SILENT:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.network.plan.silent_seconds):
                    while await self.client.read(CHUNK_BYTES):
                        pass
        if fault in (Fault.UNSENT, Fault.CUT, Fault.SILENT):
            raise _Reset

    async def _carry_answers(self) -> None:
        while data := await self.server.read(CHUNK_BYTES):
            ended = self._ended(data)
            fault, stream = self.doomed or (None, _ONLY)
            answered = stream in ended
            if fault in (Fault.SILENT, Fault.UNSENT, Fault.CUT):
                continue
            if fault is Fault.UNANSWERED:
                self.held += len(data)
                if answered or self.held > HELD_BYTES:
                    raise _Reset
                continue
            if fault is Fault.HALF_ANSWERED and answered:
                await self._pass(data[: len(data) // 2])
                raise _Reset
            if fault is Fault.DRIPPING and answered:
                self.doomed = None
                size = max(len(data) // DRIPS, 1)
                for start in range(0, len(data), size):
                    await self._pass(data[start : start + size])
                    await asyncio.sleep(DRIP_SECONDS)
                continue
            await self._pass(data)

    async def _pass(self, data: bytes) -> None:
        self.to_client.write(data)
        await self.to_client.drain()

    def _begun(self, data: bytes) -> list[int]:
        """Streams of the requests that begin here."""
        if not self.speaks_frames:
            return [_ONLY] if _REQUEST.match(data) else []
        return [stream for kind, _, stream in self.requests.read(data) if kind == _HEADERS]

    def _ended(self, data: bytes) -> list[int]:
        """Streams whose answers show here that the server has done what it was asked."""
        if not self.speaks_frames:
            # An interim answer asks for the body.
            return [] if data.startswith(b"HTTP/1.1 1") else [_ONLY]
        frames = self.answers.read(data)
        return [stream for kind, flags, stream in frames if kind in (_DATA, _HEADERS) and flags & _END_STREAM]


class _Frames:
    """Where the frames of one direction of HTTP/2 begin (RFC 9113, section 4.1)."""

    HEAD_BYTES = 9

    def __init__(self, preface_bytes: int = 0) -> None:
        self._skip = preface_bytes
        self._head = b""

    def read(self, data: bytes) -> list[tuple[int, int, int]]:
        """Kind, flags and stream of each frame whose head is complete with these bytes."""
        found = []
        while data:
            if self._skip:
                skipped = min(self._skip, len(data))
                self._skip, data = self._skip - skipped, data[skipped:]
                continue
            missing = self.HEAD_BYTES - len(self._head)
            self._head, data = self._head + data[:missing], data[missing:]
            if len(self._head) == self.HEAD_BYTES:
                head, self._head = self._head, b""
                self._skip = int.from_bytes(head[:3])
                found.append((head[3], head[4], int.from_bytes(head[5:]) & 0x7FFFFFFF))
        return found


@contextmanager
def bad_network(upstream: int, plan: Plan) -> Iterator[BadNetwork]:
    """A bad network in front of the server at this port, for as long as the block."""
    network, listening = BadNetwork(upstream, plan), threading.Event()
    loop, over = asyncio.new_event_loop(), asyncio.Event()

    def run() -> None:
        loop.run_until_complete(network.serve(listening, over))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        # One turn more, in which the cancelled let go of their connections.
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run, name="bad-network", daemon=True)
    thread.start()
    listening.wait()
    try:
        yield network
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
