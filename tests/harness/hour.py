"""An hour of two people at a project, by a script that knows the truth: every page, slips and all, until all is done.

    python tests/harness/hour.py IMAGES TRUTH.csv [--images 200] [--seed 0] [--project FOLDER]
    python tests/harness/hour.py IMAGES TRUTH.csv --images 60 --classes 6 --front-door mouse

One of them has the keyboard, and now and then types a class's name without opening the finder; the other works with the
mouse alone. Both press now and then twice what they mean once. With --front-door it is one person instead, who has only
the folder of images and makes the project in the browser (front_door.py).

IMAGES is a folder of images, TRUTH.csv says what they show (image,labels with | between the labels). Everything is done
as a person does it, in Chromium, by keys and by mouse. At the end every image-class pair in the store is what the
script gave last, and what the truth says; the script fails otherwise.
"""

import argparse
import csv
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.runs import runs
from harness import front_door
from harness.book import Book, book_of
from harness.browser import open_chromium
from harness.contexts import Contexts
from harness.person import open_page, wait_until_saved
from harness.served import APP, PAGES_ALONE, Served, until
from harness.someone import Someone

PHOTOS = "photos"


def work_through(browser: Contexts, served: Served, labels: dict[str, set[str]], seed: int, say: Callable) -> Book:
    """Two people label everything, page after page; returns what they gave. labels: image name -> names of classes."""
    db = Database(served.project)
    book, chance = book_of(db, labels), random.Random(seed)
    ann, ben = (
        Someone(open_page(browser, served, name), served.project, served.address, book, chance, mouse=name == "Ben")
        for name in ("Ann", "Ben")
    )
    truth = book.truth
    share = len(truth) // 10
    for _ in range(2):
        ann.first_labels(share)
        ben.first_labels(share)
    ann.remark()
    say(f"first labels: {dict(book.actions)}")
    if served.python == APP:
        until(lambda: runs.load_current_run(db))
    for person, work in ((ann, ben.grids), (ben, ann.review), (ann, ben.autopilot), (ben, ann.grids)):
        work(max(2, share // 2))
        person.go("/annotate")
        person.first_labels(2)
        say(f"{work.__name__}: {dict(book.actions)}; {len(book.given)} of {len(truth) * len(book.class_ids)} pairs")
    unanswered = Counter(
        class_id for image in truth for class_id in book.class_ids if (image, class_id) not in book.given
    )
    for class_id, _ in unanswered.most_common(2):
        ann.gallery(class_id)
    say(f"gallery: {dict(book.actions)}")
    ann.fix()
    ben.go("/annotate")
    while not book.complete():
        done = ann.complete_images(share) + ben.complete_images(share)
        say(f"completed {done} more; {len(book.given)} of {len(truth) * len(book.class_ids)} pairs")
        if not done:
            break
    for person in (ann, ben):
        wait_until_saved(person.page)
        assert person.page.troubles == []
        book.actions["pressed twice"] += person.doubles
    return book


def play(folder: Path, labels: dict[str, set[str]], names: list[str], seed: int, worker: bool) -> None:
    """Set a project up in a folder with photos, and work through it."""
    (folder / "classes.txt").write_text("\n".join(names))
    set_up_project(folder / "project", images_folder=folder / PHOTOS, class_file=folder / "classes.txt")
    began, processes = time.monotonic(), []
    try:
        served = Served(folder / "project", processes, python=APP if worker else PAGES_ALONE)
        with open_chromium() as started:
            book = work_through(Contexts(started), served, labels, seed, say)
        book.check(served.project)
    finally:
        for process in processes:
            process.terminate()
            process.wait(120)
    seconds = time.monotonic() - began
    say(f"{len(book.given):,} pairs, all as given and as the truth says, in {seconds:.0f} s: {dict(book.actions)}")


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("images", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--images", dest="count", type=int, default=200)
    parser.add_argument("--classes", type=int, help="so many, the most frequent, are labeled [default: all]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--project", type=Path)
    parser.add_argument("--no-worker", action="store_true")
    parser.add_argument("--front-door", choices=["mouse", "keyboard"], help="what makes the project in the browser")
    parser.add_argument("--first-label", action="store_true", help="end with the first label, with --front-door")
    words = parser.parse_args()
    with words.truth.open(newline="") as file:
        rows = [(row["image"], {name for name in row["labels"].split("|") if name}) for row in csv.DictReader(file)]
    chosen = dict(random.Random(words.seed).sample(rows, words.count))
    frequent = Counter(name for shown in chosen.values() for name in shown).most_common(words.classes)
    names = sorted(name for name, _ in frequent)
    labels = {image: shown.intersection(names) for image, shown in chosen.items()}
    with tempfile.TemporaryDirectory() as scratch:
        folder = words.project or Path(scratch)
        photos = folder / (front_door.PHOTOS if words.front_door else PHOTOS)
        photos.mkdir(parents=True)
        for image in labels:
            shutil.copy(words.images / image, photos / image)
        if not words.front_door:
            play(folder, labels, names, words.seed, not words.no_worker)
            return
        with open_chromium() as started:
            front_door.play(
                Contexts(started),
                folder,
                labels,
                names,
                say,
                mouse=words.front_door == "mouse",
                seed=words.seed,
                to_the_end=not words.first_label,
            )


if __name__ == "__main__":
    main()
