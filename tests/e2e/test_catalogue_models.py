"""Catalogues that language models write, as a user builds them: real processes against a server that counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_provider import Body, FakeProvider, Says
from fake_writers import lines_of, writer, written
from small_model import MODEL, small_model

from docgen_core.blobs import open_blobs
from docgen_core.runs.manifest import read_root
from docgen_core.state.budget import NANO

KEY, VALUE = "E2E_WRITERS_KEY", "e2e-value-of-a-key"
CALL_COST = 300 * 1_000 + 200 * 48_500
"""Nano-dollars of an answer: a cent."""
DOLLAR = NANO


def mix_file(folder: Path, *providers: str, fallback: str = "", cap: str = "1") -> str:
    """A mix file of these providers."""
    file = folder / "mix.yaml"
    listed = "\n".join(f"  - {{{provider}}}" for provider in providers)
    file.write_text(f"providers:\n{listed}\nfallback: [{fallback}]\nempty_reply_cap_usd: {cap}\n")
    return str(file)


def a_provider(server: FakeProvider | str, name: str = "alpha", *, tokens: int = 220, weight: int = 1) -> str:
    """A model at a cent a call: two items to a request."""
    base = server if isinstance(server, str) else f"{server.base}/v1"
    return (
        f'name: {name}, model: openai/{name}-1, weight: {weight}, api_base: "{base}", api_key_env: {KEY}, '
        f"max_output_tokens: {tokens}, timeout_seconds: 10, price: {{input_per_million: 1, output_per_million: 48.5}}"
    )


@pytest.fixture
def shop(desk_type: Any, tmp_path: Path) -> Any:
    """A folder where somebody builds catalogues, with a key in the environment."""
    folder = tmp_path / "shop"
    folder.mkdir()
    return desk_type(folder, {KEY: VALUE, "DOCGEN_STATE": f"sqlite:///{folder}/.docgen/state.db?lease_seconds=2"})


def root_of(shop: Any, version: str = "v1") -> Any:
    return read_root(open_blobs(str(shop.folder / ".docgen" / "blobs")), f"catalogue/{version}")


def items_asked(server: FakeProvider) -> Counter[str]:
    """How often each line was asked for; lines of different companies may be equal in words."""
    return Counter(line["name"] for body in server.requests for line in lines_of(body))


def test_a_build_from_the_first_look_to_its_tables(shop: Any) -> None:
    with FakeProvider(writer) as server:
        order = (
            "v1",
            "--companies",
            "12",
            "--products",
            "3",
            "--range",
            "4",
            "--mix",
            mix_file(shop.folder, a_provider(server)),
        )
        looked = shop.done("catalogue", "build", *order, "--budget-usd", "1", "--dry-run", "--json").json
        assert looked["texts"] == 36 and looked["covered_percent"] == 100 and not server.requests
        assert not (shop.folder / ".docgen").exists(), "a look leaves nothing behind"
        built = shop.done("catalogue", "build", *order, "--budget-usd", "1", "--workers", "2", "--concurrency", "3")
        again = shop.done("catalogue", "build", *order, "--budget-usd", "1")
        asked = len(server.requests)
        assert asked == looked["models"][0]["calls"]
        spent = shop.done("spend", "v1", "--json").json
        assert spent["total"]["calls"] == asked and spent["total"]["cost"] == asked * CALL_COST
        assert spent["budget"]["reserved"] == spent["budget"]["overshoot"] == 0
        exported = shop.done("export", "catalogue-v1", "--json").json["rows"]
        assert exported["companies"] == 12 and exported["products"] == 36 and exported["llm_usage"] == asked
        assert shop.done("verify", "catalogue-v1", "--deep", "--json").json["findings"] == []
        made = shop.done("generate", "r1", "--documents", "2", "--catalogue", "v1", "--json")
    told = root_of(shop).texts
    assert told.filled == told.items == 36
    for finished in (built, again, made):
        assert VALUE not in finished.out + finished.err
    for name in shop.files():
        assert VALUE.encode() not in (shop.folder / name).read_bytes(), name


def test_what_a_user_gets_wrong_is_one_line(shop: Any) -> None:
    with FakeProvider(writer) as server:
        mix = mix_file(shop.folder, a_provider(server))
        build = ("catalogue", "build", "v1", "--companies", "4")
        unpriced = shop.folder / "unpriced.yaml"
        unpriced.write_text(
            Path(mix).read_text().replace("price: {input_per_million: 1, output_per_million: 48.5}", "batch: false")
        )
        for words, said in (
            (("--budget-usd", "5"), "--mix"),
            (("--dry-run",), "--mix"),
            (("--mix", "expensive"), "cheap, balanced, best"),
            (("--mix", mix, "--budget-usd", "five"), "--budget-usd 'five'"),
            (("--mix", mix, "--budget-usd", "-1"), "--budget-usd '-1'"),
            (("--mix", str(unpriced), "--budget-usd", "5"), "alpha-1"),
        ):
            refused = shop.docgen(*build, *words)
            assert refused.code == 2 and said in refused.complaint, words
        keyless = type(shop)(shop.folder, {name: value for name, value in shop.env.items() if name != KEY})
        refused = keyless.docgen(*build, "--mix", mix)
        assert refused.code == 2 and KEY in refused.complaint
        assert not server.requests
        shop.done(*build, "--products", "2", "--mix", mix, "--budget-usd", "1")
        too_low = shop.docgen("budget", "v1", "0.001")
        assert too_low.code == 2 and "v1" in too_low.complaint
        nobody = shop.docgen("lift", "v1", "alpha")
        assert nobody.code == 2 and "not in quarantine" in nobody.complaint
        heavier = mix_file(shop.folder, a_provider(server, weight=2))
        other = shop.docgen(*build, "--products", "2", "--mix", heavier, "--budget-usd", "1")
        assert other.code == 2 and "mix" in other.complaint


def test_an_invalid_key_is_learnt_once_by_all_workers_its_share_falls_back_and_it_can_be_lifted(shop: Any) -> None:
    refusing = Says(status=401, error={"message": f"Incorrect API key provided: {VALUE}", "code": "invalid_api_key"})
    with FakeProvider(refusing) as dead, FakeProvider(writer) as alive:
        mix = mix_file(
            shop.folder,
            a_provider(dead, "dead"),
            a_provider(alive, "alive"),
            fallback="{to: alive, share: 1}, {to: procedural, share: 1}",
        )
        built = shop.done(
            "catalogue", "build", "v1", "--companies", "20", "--products", "3", "--range", "4",
            "--mix", mix, "--budget-usd", "1", "--workers", "3", "--concurrency", "2",
        )  # fmt: skip
        told = root_of(shop).texts
        assert told.unfilled.keys() == {"routed"} and set(told.written) == {"openai/alive-1"}
        assert 0 < told.unfilled["routed"] < 30
        assert len(dead.requests) <= 3 * 2, "no more than were under way in each worker when it was learnt"
        spent = shop.done("spend", "v1", "--json").json
        assert set(spent["quarantined"]) == {"dead"} and VALUE not in json.dumps(spent) + built.out + built.err
    assert "asked again" in shop.done("lift", "v1", "dead").err
    assert shop.done("spend", "v1", "--json").json["quarantined"] == {}


class Kills:
    """Workers of one build, each killed at its so-and-so-manieth request, and replaced."""

    def __init__(self, shop: Any, concurrency: int) -> None:
        self._shop, self._concurrency = shop, concurrency
        self.workers: list[subprocess.Popen[str]] = []
        self.killed = 0

    def start(self, count: int) -> None:
        words = ("work", "catalogue-v1", "--concurrency", self._concurrency, "--quiet")
        self.workers += [
            self._shop.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(count)
        ]

    def alive(self) -> list[subprocess.Popen[str]]:
        return [worker for worker in self.workers if worker.poll() is None]

    def kill_one(self, at: int) -> bool:
        """Kill whoever is there, in turn; False when nobody is."""
        if not (there := self.alive()):
            return False
        os.kill(there[at % len(there)].pid, signal.SIGKILL)
        self.killed += 1
        return True


def test_killed_workers_ask_again_only_for_what_was_under_way(shop: Any, full_figures: bool) -> None:
    kills, concurrency, companies = (100, 4, 400) if full_figures else (2, 4, 30)
    with FakeProvider(writer) as server:
        mix = mix_file(shop.folder, a_provider(server))
        order = ("--companies", companies, "--products", 3, "--range", 5, "--mix", mix, "--budget-usd", 100)
        looked = shop.done("catalogue", "build", "v1", *order, "--dry-run", "--json").json
        chunks = looked["models"][0]["calls"]
        begin = shop.start("catalogue", "build", "v1", *order, "--concurrency", concurrency, stdout=subprocess.DEVNULL)
        workers = Kills(shop, concurrency)
        workers.workers.append(begin)
        for number in range(kills):
            wanted = len(server.requests) + max((chunks - len(server.requests)) // (kills - number + 1), 1)
            shop.until(lambda: len(server.requests) >= min(wanted, chunks) or not workers.alive())  # noqa: B023
            if not workers.kill_one(number):
                break
            workers.start(1)
        finished = shop.done("catalogue", "build", "v1", *order, "--workers", 1)
        assert finished.code == 0 and workers.killed == kills
        asked = len(server.requests)
    print(f"{workers.killed} kills, {chunks} chunks of {3 * companies} items, {asked} requests")  # noqa: T201
    assert asked <= chunks + kills * concurrency
    told = root_of(shop).texts
    assert told.items == told.filled == 3 * companies
    verified = shop.done("verify", "catalogue-v1", "--deep", "--json").json
    assert verified["ok"]
    spent = shop.done("spend", "v1", "--json").json
    assert spent["total"]["known_cost"] <= 100 * DOLLAR and spent["budget"]["overshoot"] == 0
    assert spent["budget"]["committed"] >= asked * CALL_COST - kills * concurrency * CALL_COST


def test_a_fleet_never_spends_more_than_its_budget_whoever_is_killed(shop: Any, full_figures: bool) -> None:
    repetitions, workers, companies = (20, 8, 60) if full_figures else (1, 3, 60)
    for repetition in range(repetitions):
        version = f"v{repetition}"
        with FakeProvider(writer) as server:
            mix = mix_file(shop.folder, a_provider(server))
            order = ("--companies", companies, "--products", 6, "--range", 3, "--mix", mix, "--budget-usd", 1)
            build = shop.start(
                "catalogue", "build", version, *order, "--workers", workers, "--concurrency", 4,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if repetition % 2 == 0:
                shop.until(lambda: len(server.requests) >= 30 or build.poll() is not None)  # noqa: B023
                for child in _children(build.pid)[: workers // 2]:
                    os.kill(child, signal.SIGKILL)
            assert build.wait() == 0
            billed = len(server.requests) * CALL_COST
        spent = shop.done("spend", version, "--json").json
        told = root_of(shop, version).texts
        print(f"billed ${Decimal(billed) / NANO:.4f} of $1, unspent ${Decimal(DOLLAR - billed) / NANO:.4f}")  # noqa: T201
        assert billed <= DOLLAR and spent["budget"]["committed"] <= DOLLAR and spent["budget"]["overshoot"] == 0
        assert told.items == 6 * companies and told.unfilled.get("budget", 0) > 0


def _children(pid: int) -> list[int]:
    import psutil

    return [child.pid for child in psutil.Process(pid).children()]


def test_a_real_model_from_end_to_end_and_again_for_nothing(desk_type: Any, tmp_path: Path, full_figures: bool) -> None:
    companies, products = (200, 3) if full_figures else (1, 4)
    size = f"--companies {companies} --products {products} --range {max(companies // 4, 1)} --concurrency 2"
    desks = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        desks.append(desk_type(tmp_path / name, {"DOCGEN_BLOBS": str(tmp_path / "blobs"), KEY: VALUE}))
    with small_model(tmp_path) as base:
        provider = (
            f'name: small, model: {MODEL}, weight: 1, api_base: "{base}", max_output_tokens: 360, '
            "timeout_seconds: 120, extra_body: {seed: 2}, price: {input_per_million: 0.1, output_per_million: 0.4}"
        )
        mix = mix_file(tmp_path, provider, cap="5")
        order = (
            "catalogue",
            "build",
            "v1",
            *size.split(),
            "--mix",
            mix,
            "--budget-usd",
            1,
            "--max-rejected-percent",
            100,
        )
        _built(desks[0], *order)
    told = read_root(open_blobs(str(tmp_path / "blobs")), "catalogue/v1").texts
    assert told is not None and told.items == products * companies and told.written[MODEL] >= 1
    assert told.answers[MODEL].cost > 0 and told.filled + sum(told.unfilled.values()) == told.items
    print(told)  # noqa: T201
    assert desks[0].done("verify", "catalogue-v1", "--deep", "--json").json["ok"]
    rows = _products(desks[0])
    assert all(row["description"] for row in rows) and {row["written_by"] for row in rows} <= {MODEL, "procedural"}
    # The model is gone: whoever asked it now would fail.
    for path in (tmp_path / "blobs").iterdir():
        if path.name != "llm-cache":
            subprocess.run(["rm", "-r", str(path)], check=True)
    _built(desks[1], *order)
    again = read_root(open_blobs(str(tmp_path / "blobs")), "catalogue/v1").texts
    assert again == told and _products(desks[1]) == rows
    assert desks[1].done("spend", "v1", "--json").json["total"]["calls"] == 0


def _built(desk: Any, *order: Any) -> None:
    """A command that may take as long as the test."""
    process = desk.start(*order, stdout=subprocess.DEVNULL)
    _, err = process.communicate()
    assert process.returncode == 0, err


def _products(desk: Any) -> list[dict[str, Any]]:
    import duckdb

    desk.done("export", "catalogue-v1")
    with duckdb.connect(str(desk.folder / ".docgen" / "golden.duckdb"), read_only=True) as connection:
        found = connection.execute("SELECT description, written_by FROM products ORDER BY company_id, product_id")
        return [{"description": text, "written_by": who} for text, who in found.fetchall()]


PROBE = """
import json, socket, sys
looked_up = []
sys.addaudithook(lambda name, args: looked_up.append(str(args[0])) if name in {
    "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyname_ex"} else None)
sys.argv = ["docgen", *sys.argv[1:]]
try:
    from docgen_core.cli.app import main
    main()
except SystemExit:
    pass
models = sorted({"litellm", "openai", "anthropic", "httpx", "docgen_core.llm.runner"} & sys.modules.keys())
print(json.dumps({"models": models, "looked_up": looked_up}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words", ["--help", "catalogue build --help", "generate r1 --documents 1", "spend catalogue-default"]
)
def test_what_asks_no_model_loads_none_and_looks_up_no_host(desk: Any, words: str) -> None:
    if words.startswith("spend"):
        desk.done("catalogue", "build", "default", "--companies", "2", "--products", "1")
    finished = desk.docgen(*words.split(), prefix=[sys.executable, "-c", PROBE])
    probed = json.loads(finished.err.splitlines()[-1])
    assert probed == {"models": [], "looked_up": []}, finished.err


def test_a_storm_of_refusals_ends_and_every_text_is_written(shop: Any) -> None:
    """429 with and without Retry-After for the first requests, then answers: nobody is given up."""

    def script(number: int, body: Body) -> Says:
        if number < 4:
            return Says(status=429, headers={"retry-after": "1"} if number % 2 else {}, error={"message": "slow down"})
        return Says(text=written(body))

    with FakeProvider(script) as server:
        shop.done(
            "catalogue", "build", "v1", "--companies", 8, "--products", 3, "--range", 4, "--mix",
            mix_file(shop.folder, a_provider(server, tokens=2000)), "--budget-usd", 5,
        )  # fmt: skip
    told = root_of(shop).texts
    assert told.filled == told.items == 24
    assert shop.done("spend", "v1", "--json").json["quarantined"] == {}
