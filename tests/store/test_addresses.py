"""An address is parsed where it comes in: whoever holds one holds an allowed one, and prints no secret of it."""

import logging
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.short_forms import mark_slow_after

from annotator.errors import AnnotatorError
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.store.database.database import Database
from annotator.store.locations.addresses import Address, parse_location
from annotator.store.locations.remote_files import parse_stored_folder, to_folder_address
from annotator.ui.pages.imports.import_runner import FAILED, ImportRequest, ImportRunner

SECRET = "https://ann:hush@photos.example/birds.zip?id=3&sig=hush&X-Amz-Credential=hush"
SHOWN = "https://***@photos.example/birds.zip?id=3&sig=***&X-Amz-Credential=***"


@dataclass(frozen=True)
class Holder:
    address: Address


def test_printed_and_logged_url_hides_its_secrets(caplog):
    address = Address.parse(SECRET)
    shown = [f"{address}", str(address), "%s" % address, repr(address), f"{[address]}", f"{Holder(address)}"]  # noqa: UP031
    shown += [str(AnnotatorError(address)), f"{address!r:>200}", f"{ {address: 1} }"]
    logging.getLogger("annotator.importing").error("%s %r could not be imported", address, address)
    assert [text for text in [*shown, caplog.text] if "hush" in text or SHOWN not in text] == []
    assert address.plain == SECRET
    assert pickle.loads(pickle.dumps(address)) == address == Address(SECRET)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("file:///etc/passwd", "Addresses of file:// are not read"),
        ("memory://x", "Addresses of memory:// are not read"),
        ("simplecache::s3://photos", "chains addresses"),
        ("https://", "names no host"),
        ("s3://photos/two words", "blanks in it"),
        ("https://photos.example:0/x", "is no address"),
        ("photos", "are not read"),
    ],
)
def test_url_constructors_refuse_unsupported_and_invalid_urls(text, said):
    for make in (Address, Address.parse):
        with pytest.raises(AnnotatorError, match=said):
            make(text)
    if ":" in text:
        with pytest.raises(AnnotatorError, match=said):
            parse_location(text)


def test_error_for_a_refused_url_hides_its_secrets():
    chained = ("zip::https://ann:hush@h/x", "https://ann:hush@h/x::s3://key:hush@photos")
    for text in ("ftp://ann:hush@photos.example/x", "https://ann:hush@photos.example/a b", *chained):
        with pytest.raises(AnnotatorError) as error:
            parse_location(text)
        assert "hush" not in str(error.value)


def test_location_without_a_url_scheme_is_a_path():
    for text in ("photos/birds", "/photos", "C:\\photos", "C:/photos", "a:b", "./s3"):
        assert parse_location(text) == Path(text)
    assert parse_location("s3://photos/birds") == Address.parse("s3://photos/birds")


def test_stored_image_folder_parses_back_to_the_same_url_or_path(tmp_path):
    address = to_folder_address(Address.parse("HF://datasets/ann/birds/"))
    assert str(address) == address.plain == "hf://datasets/ann/birds"
    assert parse_stored_folder(address.plain) == address
    assert parse_stored_folder(str(tmp_path)) == tmp_path
    with pytest.raises(AnnotatorError, match="file://"):
        parse_stored_folder("file:///etc")


def test_failed_import_from_a_url_logs_no_secret(db, caplog):
    work = ImportRunner(db)
    work.start(
        ImportRequest("Ann", SHOWN, Address.parse(SECRET.replace("photos.example", "127.0.0.1:9")), ImportOptions())
    )
    work.wait()
    assert work.state.stage == FAILED and "127.0.0.1" in work.state.error
    assert "hush" not in work.state.error + caplog.text + f"{work.state}"


COUNTED = """
import sys
opened = []
def note(event, values):
    if event == "sqlite3.connect":
        opened.append(str(values[0]))
sys.addaudithook(note)
from annotator.__main__ import main
sys.argv = ["annotator", *sys.argv[1].split()]
try:
    main()
except SystemExit as ended:
    assert not ended.code
finally:
    print("opened", sum(path.endswith(("project.db", "project.db.unfinished")) for path in opened))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "words",
    mark_slow_after(
        2,
        [
            "init new --images photos --classes classes.txt --cache-gb 2 --method an",
            "init project --images photos --cache-gb 2 --method an",
            "import project labels.csv --score-column none --yes",
            "import project labels.csv --score-column score --scores-as md --yes",
            "import made photos --yes",
            "export project out.csv",
        ],
    ),
)
def test_init_import_and_export_commands_open_their_project_only_once(project, tmp_path, words):
    (tmp_path / "labels.csv").write_text("image,class,score\n00.jpg,fox,0.9\n01.jpg,fox,0.8\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", COUNTED, words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "opened 1"


def test_import_into_an_open_project_leaves_no_transaction_or_temporary_table(db, tmp_path):
    (tmp_path / "labels.csv").write_text("image,class\n00.jpg,fox\n01.jpg,deer\n")
    for again in range(2):
        with prepare_import(db, tmp_path / "labels.csv", ImportOptions(), "Ann") as plan:
            assert plan.db is db
            assert plan.preview.answers_new == (0 if again else 2)
            plan.apply()
    assert db.value("SELECT count(*) FROM label WHERE state = 1") == 2
    assert not db.sql.conn.in_transaction
    assert [row[1] for row in db.tuples("PRAGMA database_list") if row[1] not in ("main", "temp")] == []
    assert db.tuples("SELECT name FROM temp.sqlite_master") == []
    with Database(db.paths.project).writing() as other:
        other.execute("INSERT INTO setting (key, value) VALUES ('probe', '1')")
    assert db.get_setting("probe") == 1


@pytest.mark.parametrize("ending", [KeyboardInterrupt, AnnotatorError])
def test_import_interrupted_at_any_step_can_be_repeated_in_the_same_open_project(db, tmp_path, ending):
    (tmp_path / "labels.csv").write_text("image,class\n" + "".join(f"{number:02}.jpg,fox\n" for number in range(20)))
    calls, allowed = [], 0

    def counted(what: str, done: int, of: int) -> None:
        calls.append(what)
        if len(calls) > allowed:
            raise ending("stopped")

    while True:
        calls.clear()
        try:
            with prepare_import(db, tmp_path / "labels.csv", ImportOptions(), "Ann", counted) as plan:
                plan.apply(counted)
            break
        except ending:
            assert not db.value("SELECT count(*) FROM decision") or plan.is_stored
        allowed += 1
    assert len({*calls}) > 2, "it was interrupted at several steps"
    assert db.value("SELECT count(*) FROM label WHERE state = 1") == 20


def test_lent_database_connection_is_replaced_after_an_error_and_kept_otherwise(db, tmp_path):
    with pytest.raises(KeyboardInterrupt), db.lend() as lent:
        lent.sql.execute("CREATE TEMP TABLE written (stem TEXT)")
        lent.sql.execute("ATTACH ? AS staged", [str(tmp_path / "x.db")])
        # an open cursor, because of which the file could not be detached
        rows = lent.iterate_rows("SELECT id FROM image")
        next(rows)
        raise KeyboardInterrupt
    assert db.tuples("SELECT name FROM temp.sqlite_master") == []
    assert [row[1] for row in db.tuples("PRAGMA database_list") if row[1] != "temp"] == ["main"]
    with db.lend() as lent:
        kept = lent.sql
    assert db.sql is kept, "without an error the connection stays"
