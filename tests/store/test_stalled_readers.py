"""Pictures on a disk that does not answer: they are given up in words, and nothing else waits for them."""

import asyncio
import contextlib
import threading
from pathlib import Path

import pytest
from harness.served import serving, until
from harness.stalled import stalled

from annotator.errors import StorageTimeout
from annotator.store.database.database import Database
from annotator.store.disk import open_files
from annotator.ui.serving.reader_pool import ReaderPool

LONG = 60.0  # seconds: a deadline that a healthy file meets on any machine


def run(coroutine):
    """What it returns; in a thread of its own, since a test with a browser before this one leaves a loop running."""
    results = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(coroutine)))
    thread.start()
    thread.join(60)
    return results[0]


def read(path: Path) -> bytes:
    with open_files.open_file(path) as file:
        return file.read()


@pytest.fixture
def files(tmp_path) -> list[Path]:
    for number in range(6):
        (tmp_path / f"{number}.jpg").write_bytes(b"whole")
    return sorted(tmp_path.glob("*.jpg"))


async def told(reader: ReaderPool, path: Path, function=read) -> str:
    try:
        return (await reader.read(path, "picture", function, path)).decode()
    except StorageTimeout as problem:
        return str(problem)


def test_stalled_image_read_times_out_without_a_second_read_and_succeeds_after_recovery(files):
    begun = []

    def counted(path: Path) -> bytes:
        begun.append(path)
        return read(path)

    hanging, answering = threading.Event(), threading.Event()

    async def story():
        reader = ReaderPool(at_once=2, most_hung=3, deadline=1.5)
        first = await asyncio.gather(*[told(reader, path, counted) for path in (files[0], files[0], files[1])])
        assert all("nothing came within 1.5 seconds" in text for text in first)
        assert len(begun) == 2, "two that ask for one picture share a reading"
        assert "still being waited for" in await told(reader, files[0], counted)
        reader.deadline = LONG
        assert await told(reader, files[4], counted) == "whole", "others come, although two threads hang"
        reader.deadline = 1.5
        assert "nothing came" in await told(reader, files[2], counted)
        assert "3 readings wait for it already" in await told(reader, files[5], counted)
        assert len(begun) == 4
        hanging.set()
        answering.wait(120)
        reader.deadline = LONG
        while any([await told(reader, path, counted) != "whole" for path in files[:3]]):
            await asyncio.sleep(0.01)
        assert await asyncio.gather(*[told(reader, path) for path in files]) == ["whole"] * 6
        while reader._hung or reader._threads > 2:
            await asyncio.sleep(0.01)
        return reader._hung_files

    results = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(story())), daemon=True)
    with stalled(files[:3]):
        thread.start()
        until(lambda: hanging.is_set() or not thread.is_alive())
    answering.set()
    thread.join(120)
    assert results == [{}]


def test_image_decoding_time_does_not_count_toward_the_file_read_deadline(files):
    go_on = threading.Event()

    def slow(path: Path) -> bytes:
        with open_files.get_clock().pause():
            go_on.wait(120)
        return read(path)

    async def story():
        reader = ReaderPool(at_once=1, deadline=1.0)
        decoding = asyncio.create_task(told(reader, files[0], slow))
        queued = asyncio.create_task(told(reader, files[1]))
        done, _ = await asyncio.wait({decoding, queued}, timeout=2.0)
        assert not done, "it is given up neither while it decodes nor while it waits behind one that does"
        reader.deadline = LONG
        go_on.set()
        return await asyncio.gather(decoding, queued)

    assert run(story()) == ["whole", "whole"]


def test_reader_pool_reads_another_image_while_a_read_is_stalled(files):
    go_on = threading.Event()

    async def story():
        reader = ReaderPool(at_once=1, deadline=30)
        hangs = asyncio.create_task(told(reader, files[0], lambda _: b"late" if go_on.wait(120) else b"never"))
        await asyncio.sleep(0)  # so that it is the first in the queue
        assert await told(reader, files[1]) == "whole"
        assert not hangs.done()
        go_on.set()
        return await hangs

    assert run(story()) == "late"


def test_queued_image_reads_time_out_when_all_reader_threads_are_stalled(files):
    go_on = threading.Event()

    def hangs(path: Path) -> bytes:
        go_on.wait(120)
        return b"late"

    async def story():
        reader = ReaderPool(at_once=2, most_hung=4, deadline=0.3)
        answers = await asyncio.gather(
            *[reader.read(number, "", hangs, files[0]) for number in range(50)], return_exceptions=True
        )
        go_on.set()
        return answers, reader._threads

    answers, threads = run(story())
    assert all(isinstance(answer, StorageTimeout) for answer in answers)
    assert threads <= 6


@pytest.mark.process
def test_decisions_are_saved_while_45_image_reads_are_stalled(tmp_path, class_file):
    from conftest import draw

    from annotator.exchange.project_setup import set_up_project

    photos = [draw(tmp_path / "photos" / f"{number}.jpg", seed=number, size=(48, 36)) for number in range(46)]
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", class_file=class_file)
    db = Database(tmp_path / "project")
    with serving(db.paths.project) as served, stalled(photos[:45]) as waited_for:
        ids = dict(db.tuples("SELECT name, id FROM image"))
        askers = [
            threading.Thread(target=_ask, args=[served, ids[f"{number}.jpg"]], daemon=True) for number in range(45)
        ]
        for asker in askers:
            asker.start()
        until(lambda: len(waited_for()) >= 8)
        for number in range(20):
            decision = {"uuid": f"decision-{number}", "action": "label", "image": 1, "class": 1, "state": 1}
            assert served.post("/api/decisions", {"decisions": [decision]}, timeout=120)["saved"]
        assert all(asker.is_alive() for asker in askers)


def _ask(served, image_id: int) -> None:
    with contextlib.suppress(OSError):  # the app has ended
        served.get(f"/api/image/{image_id}")
