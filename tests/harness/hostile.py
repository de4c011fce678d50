"""A project in which everything that people, files and other programs can name is hostile, and a server that counts
what a browser asks of any other server than ours."""

import re
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from conftest import draw
from PIL import Image

from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.predictions import prediction_import
from annotator.exchange.project_setup import set_up_project
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.quality import audit_sampling
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.image_map import save_map
from annotator.store.classes import class_changes, classes
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, image_overlap
from annotator.store.networks import network_comparisons
from annotator.store.people import assignment, members, reference_answers
from harness.projects import draw_heatmaps, publish_run

HOST = "evil.example"
MARKUP = (
    f"![x](http://{HOST}/a.png)",
    f"<img src=http://{HOST}/b.png onerror=fetch('//{HOST}')>",
    f"[link](http://{HOST}) http://{HOST} www.{HOST} me@{HOST}",
    ":streamlit: :fox_face: :material/home: :red[red] $x^2$ `code` a -> b",
)
# What every object of JavaScript has.
OF_OBJECTS = ("constructor", "__proto__", "hasOwnProperty", "toString", "valueOf")
ANN, BEN = f"![n](//{HOST}/n.png)", f"<img src=//{HOST}/m.png>"
FOLDER = f"![d](www.{HOST}) :red[d]"
# Named by people, files or other programs: each is looked for on the pages.
SOURCE, TAG, NETWORK, LIST = (f"![{kind}](//{HOST}/{kind}.png)" for kind in ("source", "tag", "network", "list"))
ATTRIBUTE, VALUE = f"![k](//{HOST}/k.png)", f"![v](//{HOST}/v.png) :material/home:"
CLAIMS = {
    "iss": f"https://{HOST}",
    "sub": f"![s](//{HOST}/s.png)",
    "name": f"![c](//{HOST}/c.png) <b>",
    "email": f"<img/src=//{HOST}/e.png>@{HOST}",
    "email_verified": True,
    "picture": f"https://{HOST}/face.png",
    "groups": [f"![g](//{HOST}/g.png)"],
}
CHROMIUMS = re.compile(r"CONNECT \S+\.(google|googleapis)\.com:443 ")  # what it asks for itself, on no page's behalf
# ImageDescription, Make, Model, Software, Artist, DateTime, Copyright; some of them no UTF-8, one of them long.
EXIF = {0x010E: MARKUP[0], 0x010F: MARKUP[1], 0x0110: MARKUP[2], 0x0131: 5000 * "a", 0x013B: ANN, 0x0132: MARKUP[3]}


def hostile_project(folder: Path) -> Database:
    """Make the project below `folder`; its run, map, audit and errors, too."""
    chance = np.random.default_rng(0)
    for number in range(12):
        path = folder / FOLDER / f"![f](www.{HOST}) <img src=x>{number}.jpg"
        _give_exif(draw(path, ("fox",), seed=number))
    (folder / FOLDER / f"![broken](www.{HOST}).jpg").write_bytes(b"no image")
    (folder / "classes.txt").write_text("".join(f"{name}\t{name}\n" for name in (*MARKUP, *OF_OBJECTS)))
    project = folder / f"[p](www.{HOST})"
    set_up_project(project, images_folder=folder / FOLDER, class_file=folder / "classes.txt")
    db = Database(project)

    def say(annotator: str, image_id: int, class_id: int | None, state: int | None, action: str = "label", **more):
        one = Decision(str(uuid.uuid4()), action, annotator, "click", image_id, class_id, state, **more)
        assert not decisions.save(db, [one]).refused

    for image_id in (1, 2, 3):
        for class_id in range(1, 10):
            say(ANN, image_id, class_id, 1 if (image_id + class_id) % 2 else -1)
    say(BEN, 1, 2, -1)
    say(BEN, 4, None, None, "flag", note=MARKUP[0] + MARKUP[1])
    for image_id in range(1, 13):
        say(BEN, image_id, None, None, "comment", note=MARKUP[1] + MARKUP[2])
    chances = chance.uniform(0.55, 0.99, (12, 9))
    draw_heatmaps(db, publish_run(db, chances), chances > 0)
    audit_sampling.draw_audit(db, 81, people=2)
    # Answered of some classes only: the certificate has something to draw, agreement two people who did not see each
    # other's answers, and the others wait for an answer.
    for one in [one for one in audit_sampling.load_open_cells(db) if one.class_id > 4]:
        for name in (ANN, BEN):
            state = 1 - 2 * (one.image_id % 2)
            given = Decision(str(uuid.uuid4()), "label", name, "audit", one.image_id, one.class_id, state)
            assert not decisions.save(db, [given]).refused
    ids = np.array(sorted(image.id for image in images.load_all_images(db)))
    save_map(db.paths.map(DEFAULT_BACKBONE), ids, chance.random((12, 2)))
    heartbeat.record_error(db, MARKUP[0] + MARKUP[1])
    _bring(db, folder)
    return db


def _give_exif(path: Path) -> None:
    with Image.open(path) as image:
        image.load()
    exif = Image.Exif()
    for number, text in EXIF.items():
        exif[number] = text
    exif[0x8298] = b"\xff\xfe<img src=x>"
    exif.get_ifd(0x8825)[1] = MARKUP[0]  # GPSLatitudeRef
    exif.get_ifd(0x8769)[0x9003] = MARKUP[1]  # DateTimeOriginal
    image.save(path, quality=95, exif=exif)


def _bring(db: Database, folder: Path) -> None:
    """What comes from outside or is given a name besides: attributes, predictions, tags, networks, members, lists."""
    names = [image.name for image in sorted(images.load_all_images(db), key=lambda image: image.id)]
    table = folder / f"![i](www.{HOST}) imported.csv"
    table.write_text(f'image,labels,"{ATTRIBUTE}"\n' + "".join(f'"{name}",,"{VALUE}"\n' for name in names))
    with prepare_import(db.paths.project, table, ImportOptions(reading=ReadingOptions(class_columns=())), BEN) as plan:
        plan.apply()
    scores = folder / "scores.csv"
    scores.write_text("image,constructor,valueOf\n" + "".join(f'"{name}",0.9,0.2\n' for name in names))
    with prediction_import.prepare_predictions(db, scores, SOURCE, prediction_import.PredictionOptions(), BEN) as plan:
        plan.apply()
    for place, tag in enumerate((TAG, f"{TAG}2")):
        export_data_set(db, folder / f"export{place}.csv", "csv", tag=tag, by=BEN)
    network_comparisons.save_comparison(
        db, network_comparisons.NetworkComparison(NETWORK, DEFAULT_BACKBONE, 1.8e9, images=12, answers=30, classes=3)
    )
    network_comparisons.save_comparison(
        db, network_comparisons.NetworkComparison(f"{NETWORK}2", DEFAULT_BACKBONE, 1.8e9, error=MARKUP[0])
    )
    classes.add_classes(db, [(f"{name} gone", name) for name in MARKUP[:2]])
    gone = [one.id for one in classes.load_active_classes(db) if one.name.endswith(" gone")]
    class_changes.edit(db, BEN, {gone[1]: {"description": MARKUP[2], "heading": MARKUP[0]}})
    class_changes.archive(db, BEN, gone)
    class_changes.edit(db, BEN, {1: {"heading": MARKUP[0], "synonyms": [f"{MARKUP[1]} too"], "examples": [1, 2]}})
    members.add(db, ANN, "owner", "test")
    members.add(db, BEN, "annotator", ANN, f"<b>@{HOST}")
    newcomer = members.sign_in_by_provider(db, CLAIMS).name
    assignment.assign_images(db, BEN, LIST, names[8:])
    assignment.assign_class(db, newcomer, 1)
    image_overlap.set_overlap(db, 2, 0.2)
    reference_answers.choose_images(db, names[:2], 0.05)


@contextmanager
def outside() -> Iterator[tuple[str, list[str]]]:
    """A proxy for the browser: whatever it asks of another machine arrives here. Yields its address, and the first
    line of each request, which grows."""
    asked: list[str] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                line = connection.recv(4096).decode("latin-1").partition("\r\n")[0]
                if not CHROMIUMS.match(line):
                    asked.append(line)
                connection.sendall(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", asked
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
