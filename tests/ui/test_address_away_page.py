"""Grid, Review and Annotate in a real Chromium while the server that has the images takes requests and answers none."""

import http.server
import threading
from functools import partial

import numpy as np
import pytest
from harness.person import open_page
from harness.remote_images import picture, web_server
from harness.served import serving
from playwright.sync_api import expect

from annotator.exchange.project_setup import set_up_project
from annotator.store.database import arrays
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.locations import remote_files
from annotator.store.locations.addresses import Address
from annotator.store.runs import runs

pytestmark = pytest.mark.browser

IMAGES = 60
PAGES = """
import sys
from pathlib import Path
from harness.page_alone import serve_pages
from annotator.store.locations import remote_files as objects
objects.READ_TIMEOUT_SECONDS, objects.AWAY_SECONDS = 0.5, 600
serve_pages(Path(sys.argv[1]), int(sys.argv[3]))
"""


class Web(http.server.SimpleHTTPRequestHandler):
    """A web folder, until it hangs."""

    def do_GET(self):
        if self.server.hangs.is_set():
            self.server.end.wait(60)
        else:
            super().do_GET()

    def log_message(self, *values):
        pass


def suggest_the_class(db):
    ids = np.array(sorted(image.id for image in images.load_all_images(db)))
    facts = {"method": "gr", "parameters": {}, "backbone": "none", "class_ids": [1], "images": IMAGES}
    run = runs.begin(db, **facts, last_decision_id=0, threshold=0.5)
    arrays.save_array(db.paths.run(run) / "image_ids.npy", ids)
    arrays.save_array(db.paths.run(run) / "probabilities.npy", np.full((IMAGES, 1), 0.9, np.float16))
    runs.publish(db, run, epochs=1, seconds=0.1, loss=[0.5])


@pytest.mark.slow
def test_labeling_pages_report_images_that_a_hanging_image_server_does_not_return(browser, tmp_path, monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(remote_files, "_files_by_address", {})
    (tmp_path / "www/birds").mkdir(parents=True)
    for number in range(IMAGES):
        (tmp_path / f"www/birds/{number:02}.jpg").write_bytes(picture(number))
    (tmp_path / "classes.txt").write_text("fox\n")
    address, server = web_server(partial(Web, directory=str(tmp_path / "www")))
    server.hangs, server.end = threading.Event(), threading.Event()
    try:
        folder = f"{address}/birds"
        set_up_project(
            tmp_path / "p", images_folder=Address.parse(folder), in_place=True, class_file=tmp_path / "classes.txt"
        )
        suggest_the_class(Database(tmp_path / "p"))
        server.hangs.set()
        with serving(tmp_path / "p", ("-P", "-c", PAGES)) as served:
            page = open_page(browser, served, "Ann", "/grid")
            expect(page.locator(".class-name .name")).to_have_text("fox")
            expect(page.locator(".tiles:not(.skeleton) .tile[data-state='broken']")).to_have_count(24)
            expect(page.locator(".words")).to_contain_text("24 of 24 images cannot be shown")
            expect(page.locator(".words")).to_contain_text(remote_files.UNREADABLE_NOW_PROBLEM)
            noted = images.load_missing_reasons(Database(tmp_path / "p"))
            assert 0 < len(noted) <= 16, "only what was asked for before the address counted as away gets a note"
            for path in ("/review", "/annotate"):
                page.goto(served.address + path)
                expect(page.locator(".stage .empty")).to_contain_text(
                    remote_files.UNREADABLE_NOW_PROBLEM, timeout=30_000
                )
            assert images.load_missing_reasons(Database(tmp_path / "p")) == noted
    finally:
        server.end.set()
        server.shutdown()
        server.server_close()
