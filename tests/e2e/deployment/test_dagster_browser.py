"""A new user in a headless browser: by clicks alone, from the front page to a corpus that succeeded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from docgen_core.render.chromium import find_chromium

if TYPE_CHECKING:
    from tests.e2e.deployment.conftest import Deployment

pytestmark = pytest.mark.timeout(900)

RANGE = "00008-00011"
DOCUMENTS = 60
"""So many units that their progress is told before the last is done."""
PATIENCE_MS = 240_000
WINDOW = {"width": 1400, "height": 900}
WHOLE_GRAPH = {"width": 1900, "height": 1900}
FIRST_STEP = "catalogue.launch_catalogue_workers"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_chromium()))
        opened = browser.new_page(viewport=WINDOW)
        opened.set_default_timeout(PATIENCE_MS)
        yield opened
        browser.close()


@pytest.fixture(scope="module")
def keep(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Keeps a screenshot; DOCGEN_SCREENSHOTS names a folder to keep them in for good."""
    folder = Path(os.environ.get("DOCGEN_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)

    def shoot(page: Page, name: str, above: Locator | None = None) -> None:
        # Dagster puts its own stack below every failure: it names this machine's folders, and nothing to do.
        end = above.bounding_box() if above else None
        seen = {"x": 0, "y": 0, **WINDOW, "height": end["y"]} if end else None
        page.screenshot(path=folder / f"{name}.png", clip=seen)

    return shoot


def overwrite(launchpad: Locator, setting: str, value: str) -> None:
    """Double-click the value of a setting in the Launchpad's editor and type another."""
    line = launchpad.locator(".CodeMirror-line", has_text=f"{setting}:").first
    line.locator("span[class^=cm-]").last.dblclick()
    launchpad.page.keyboard.type(value)


def open_launchpad(deployment: Deployment, page: Page) -> Locator:
    """The Launchpad of `generate_corpus`, by clicks from the front page."""
    page.goto(deployment.url)
    page.get_by_text("Jobs", exact=True).first.click()
    page.get_by_role("link", name="generate_corpus").first.click()
    materialize = page.get_by_role("button", name="Materialize all")
    materialize.wait_for()
    materialize.locator("xpath=following::button[1]").click()
    page.get_by_role("menuitem", name="Open launchpad").click()
    launchpad = page.get_by_role("dialog")
    launchpad.get_by_text("documents_per_range").first.wait_for()
    launchpad.get_by_placeholder("Partition").click()
    page.get_by_text(RANGE, exact=True).last.click()
    return launchpad


def test_a_wrong_value_is_refused_in_one_line_wherever_it_is_seen(
    deployment: Deployment, page: Page, keep: Callable[..., None]
):
    """What has the wrong type, by the Launchpad before anything starts; what docgen knows better, by the step."""
    launchpad = open_launchpad(deployment, page)
    overwrite(launchpad, "documents_per_range", "many")
    launchpad.get_by_text("documents_per_range").last.wait_for()
    launchpad.get_by_text("Invalid scalar", exact=False).first.wait_for()
    keep(page, "launchpad-refuses")
    overwrite(launchpad, "documents_per_range", "0")
    launchpad.get_by_text("No errors").wait_for()
    launchpad.get_by_text("Materialize", exact=True).last.click()
    page.wait_for_url("**/runs/*")
    page.get_by_text("Failure", exact=True).first.wait_for()
    errored = page.get_by_text("Errored (1)").locator(f"xpath=following::*[text()='{FIRST_STEP}']")
    errored.first.click()
    page.get_by_text("STEP_FAILURE").first.wait_for()
    page.get_by_text("documents 0: give a whole number", exact=False).first.wait_for()
    keep(page, "run-refused", above=page.get_by_text("Stack Trace").first)


def test_a_corpus_is_generated_from_the_launchpad_by_clicks(
    deployment: Deployment,
    page: Page,
    keep: Callable[..., None],
    rows: Callable[[str], list[tuple[Any, ...]]],
):
    launchpad = open_launchpad(deployment, page)
    overwrite(launchpad, "documents_per_range", str(DOCUMENTS))
    overwrite(launchpad, "name", "clicked")
    launchpad.get_by_text("No errors").wait_for()
    materialize = launchpad.get_by_role("button", name="Materialize").last
    expect(materialize).to_be_enabled(timeout=PATIENCE_MS)
    keep(page, "launchpad")
    materialize.click()

    page.wait_for_url("**/runs/*")
    page.get_by_text(re.compile(rf"[1-9]\d* of {DOCUMENTS} units done")).first.wait_for()
    keep(page, "progress")
    page.get_by_text("Success", exact=True).first.wait_for()
    keep(page, "run")
    assert rows(f"SELECT run_id, count(*) FROM documents WHERE run_id = 'clicked-{RANGE}' GROUP BY run_id") == [
        (f"clicked-{RANGE}", DOCUMENTS)
    ]


def test_the_graph_and_the_metadata_show_what_was_made(deployment: Deployment, page: Page, keep: Callable[..., None]):
    """After the run above: the graph is one group, a range shows its first pages, its rows and its checks."""
    page.set_viewport_size(WHOLE_GRAPH)
    page.goto(deployment.url)
    page.get_by_text("Lineage", exact=True).first.click()
    page.get_by_text("golden_shards").last.wait_for()
    page.get_by_text(re.compile("Passed$")).first.wait_for()
    expect(page.get_by_text("Loading")).to_have_count(0, timeout=PATIENCE_MS)
    keep(page, "graph")
    page.set_viewport_size(WINDOW)

    page.goto(f"{deployment.url}/assets/golden_shards?view=partitions&partition={RANGE}")
    page.locator("tr", has_text="first pages").get_by_text("[Show Markdown]").click()
    page.get_by_role("img", name="first pages").wait_for()
    keep(page, "first-pages")

    page.goto(f"{deployment.url}/assets/invoices?view=partitions&partition={RANGE}")
    page.get_by_text(f"clicked-{RANGE}").first.wait_for()
    page.get_by_text("document_id").first.wait_for()
    page.locator("tr", has_text="gross totals").get_by_text("[Show Markdown]").click()
    page.get_by_role("img", name="gross totals by currency").wait_for()
    keep(page, "invoices")
    page.keyboard.press("Escape")

    page.goto(f"{deployment.url}/assets/invoices?view=checks")
    page.get_by_text("Succeeded").first.wait_for()
    keep(page, "checks")


def test_a_failed_check_says_what_to_do(deployment: Deployment, page: Page, keep: Callable[..., None]):
    """Somebody deletes exported lines; the check is executed at its range."""
    with duckdb.connect(str(deployment.sink)) as sink:
        sink.execute(f"DELETE FROM line_items WHERE run_id = 'clicked-{RANGE}' AND line_number = 1")
    check = {"assetKey": {"path": ["line_items"]}, "name": "row_count_matches_manifest"}
    launched = deployment.ask(
        """mutation ($params: ExecutionParams!) { launchRun(executionParams: $params) {
            __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }""",
        params={
            "selector": {
                "repositoryName": "__repository__",
                "repositoryLocationName": "docgen",
                "jobName": "__ASSET_JOB",
                "assetSelection": [],
                "assetCheckSelection": [check],
            },
            "runConfigData": {"resources": {"corpus": {"config": {"name": "clicked"}}}},
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": RANGE}]},
        },
    )["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    page.goto(f"{deployment.url}/assets/line_items?view=checks&checkDetail=row_count_matches_manifest")
    page.get_by_text("Failed", exact=True).first.wait_for()
    page.get_by_text("1 finding: launch the job export_ranges for the range", exact=False).first.wait_for()
    page.get_by_text("In Progress").first.wait_for(state="hidden")
    keep(page, "check-failed")
