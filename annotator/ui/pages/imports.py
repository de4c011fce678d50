"""Import: choose a source, see what it would change, import it; what was imported, and undoing it.

A project has one import at a time (ui/work/importing.py), and every open Import page shows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.formats import all_formats, formats_of
from annotator.exchange.imports import importing as labels
from annotator.exchange.predictions import outside_predictions as predictions
from annotator.exchange.predictions.score_tables import OWN
from annotator.exchange.sources.landing import size_in_words
from annotator.store.database.database import Database
from annotator.store.locations.addresses import Address
from annotator.store.runs.prediction_sources import LONGEST_NAME, PROBABILITY, SCORE
from annotator.ui.access import context
from annotator.ui.components import mount_upload
from annotator.ui.pages import import_preview
from annotator.ui.parts import frame, import_history, tables
from annotator.ui.work import paths
from annotator.ui.work.importing import ONE_FILE, Importing, Order, State, importing
from annotator.ui.work.uploads import Upload, uploads

REFRESH = 0.5  # seconds, while an import is at work
LABELS, PREDICTIONS = "Labels and images", "Predictions of another model"
UPLOAD, PATH = "Upload", "Path or address"
KEPT = {
    "import_kind": LABELS,
    "import_place": UPLOAD,
    **dict.fromkeys(("import_path", "import_images", "import_called", "import_rows", "import_columns"), ""),
    "import_scale": PROBABILITY,
    f"import_format_{LABELS}": "",
    f"import_format_{PREDICTIONS}": "",
}
"""The fields that say where an import comes from, and what they hold at first."""
WHOLE = "All files together"
SCALES = {
    PROBABILITY: "Probabilities, from 0 to 1",
    SCORE: "Other scores: only their order within a class counts",
}
ABOUT = {
    LABELS: "Labels, images, notes and facts from elsewhere. You see first what would change.",
    PREDICTIONS: "What a detector, tagger or language model says. Your answers decide how far it is believed.",
}


@dataclass(frozen=True)
class Source:
    """A source that somebody has named."""

    name: str
    path: Address | Path
    upload: Upload | None = None


def page() -> None:
    """Draw the Import page."""
    with frame.errors_shown():
        name, db = frame.annotator_name(), context.db()
        work = importing(db)
        st.subheader("Import")
        state = work.state  # of one moment for all of the page
        _keep_fields(name, state)
        if not state.is_open:
            _choose(db, name, work)
        if state.is_at_work:
            frame.refreshed(import_preview.progress, REFRESH)(work)
        else:
            import_preview.outcome(db, name, work, state)
        import_history.predictions(db)
        import_history.imports(db, name)


def _keep_fields(by: str, state: State) -> None:
    """Restore what was typed.

    Streamlit forgets fields that are not on the page for a while, and on a reload all of them.
    """
    fields, order = st.session_state, state.order
    if "import_kind" not in fields and order and order.by == by:
        fields["import_kind"] = PREDICTIONS if order.is_predictions else LABELS
        fields["import_called"] = order.called
        if not order.upload:
            fields["import_place"], fields["import_path"] = PATH, order.name
    for key, first in KEPT.items():
        fields[key] = fields.get(key, first)


def _choose(db: Database, by: str, work: Importing) -> None:
    with st.container(horizontal=True, gap="medium"):
        kind = st.segmented_control("What", (LABELS, PREDICTIONS), required=True, key="import_kind") or LABELS
        place = st.segmented_control("From", (UPLOAD, PATH), required=True, key="import_place")
    st.caption(ABOUT[kind])
    upload = _uploaded(db, by) if place == UPLOAD else None
    if place == UPLOAD and upload is None:
        return
    with st.form("import_source", border=False):
        given = "" if upload else _path("File, folder, archive or address" if kind == LABELS else "File")
        chosen = _which(upload) if upload else ""
        called, scale = _called() if kind == PREDICTIONS else ("", PROBABILITY)
        format_ = st.selectbox(
            "Format",
            ["", *_formats(kind)],
            format_func=lambda name: _formats(kind)[name] if name else "Recognize it",
            key=f"import_format_{kind}",
        )
        companions = _companions(upload) if kind == PREDICTIONS else (None, None)
        images = "" if upload or kind == PREDICTIONS else _images()
        wanted = st.form_submit_button("Preview", type="primary")
    if not wanted:
        return
    try:
        source = _of_upload(upload, chosen) if upload else _of_path(given)
        if kind == LABELS:
            folder = paths.folder(images) if images.strip() else None
            taken = labels.Choices(format_ or None, folder, may_be_own=False)
            choices: labels.Choices | predictions.Choices = taken
        else:
            rows, columns = (_companion(source, one) for one in companions)
            choices = predictions.Choices(format_ or None, scale, {}, rows, columns, only_known=True)
            _refuse_nameless(called, source)
        work.start(Order(by, source.name, source.path, choices, upload.folder if upload else None, called))
    except AnnotatorError as error:
        frame.error(error)
    else:
        st.rerun()


def _uploaded(db: Database, by: str) -> Upload | None:
    """Draw the place for files and those that are uploaded, and return them; None without any."""
    mount_upload()
    upload = uploads(db).of(by)
    if upload is None:
        return None
    rows = [{"Uploaded": name, "Size": size_in_words(size)} for name, size in upload.files]
    tables.show(rows, "Uploaded files")
    if st.button("Remove", key="import_remove_upload"):
        uploads(db).remove(by)
        st.rerun()
    return upload


def _path(title: str) -> str:
    return st.text_input(
        title,
        placeholder="/home/ann/birds/instances.json",
        help="On the machine that runs Annotator, or an address (https, s3, gs). Archives are unpacked.",
        key="import_path",
    )


def _which(upload: Upload) -> str:
    """Return the file of an upload to begin with; WHOLE for all files, which the format of a whole folder needs."""
    names = [name for name, _ in upload.files]
    if len(names) == 1:
        return names[0]
    guess = WHOLE if formats_of(upload.folder) else _likeliest(upload.folder, names)
    options = [*names, WHOLE]
    key = f"import_which_{'|'.join(names)}"
    return st.selectbox("Read", options, index=options.index(guess), key=key) or guess


def _likeliest(folder: Path, names: Sequence[str]) -> str:
    """Return the first file that some format recognises, else the first file; names with fewer dots come first."""
    plain = sorted(names, key=lambda name: (name.count("."), name))
    return next((name for name in plain if formats_of(folder / name)), plain[0])


def _called() -> tuple[str, str]:
    called = st.text_input(
        "Name of the model", placeholder="yolo-world", max_chars=LONGEST_NAME, key="import_called"
    ).strip()
    scale = st.radio("Its numbers are", list(SCALES), format_func=SCALES.__getitem__, key="import_scale")
    return called, scale


def _formats(kind: str) -> dict[str, str]:
    """Return the formats to choose from: name -> a line about it."""
    formats = {name: format_ for name, format_ in all_formats().items() if format_.read}
    own = {name: f"{name}: a table or array of scores" for name in OWN} if kind == PREDICTIONS else {}
    return own | {name: f"{name}: {format_.about}" for name, format_ in formats.items() if name not in own}


def _companions(upload: Upload | None) -> tuple[str, str]:
    """Return the files with the names of the rows and columns of a .npy array, "" where there is none."""
    titles = {"rows": "Names of its rows (images), one a line", "columns": "Names of its columns (classes)"}
    if upload is None:
        with st.expander("For a .npy array"):
            given = [
                st.text_input(title, placeholder=f"{which}.txt", help="A file beside it.", key=f"import_{which}")
                for which, title in titles.items()
            ]
        return given[0].strip(), given[1].strip()
    names = [name for name, _ in upload.files]
    if not any(name.lower().endswith(".npy") for name in names):
        return "", ""
    chosen = [
        st.selectbox(title, ["", *names], format_func=lambda name: name or "Choose a file", key=f"import_{which}_of")
        for which, title in titles.items()
    ]
    return chosen[0] or "", chosen[1] or ""


def _companion(source: Source, name: str | None) -> Path | None:
    """Return the file of this name beside the array; None for no name.

    Raises AnnotatorError where it does not exist.
    """
    if not name:
        return None
    path = None if isinstance(source.path, Address) else source.path.with_name(Path(name).name)
    if path is None or not path.is_file():
        raise AnnotatorError(f"{Path(name).name} does not lie beside {source.name}.")
    return path


def _images() -> str:
    return st.text_input(
        "Folder with the images, if they are new",
        placeholder="/home/ann/birds/images",
        help="Only needed for images that the project does not have yet.",
        key="import_images",
    )


def _of_upload(upload: Upload, chosen: str) -> Source:
    if chosen == WHOLE:
        return Source(", ".join(name for name, _ in upload.files), upload.folder, upload)
    return Source(chosen, upload.folder / chosen, upload)


def _of_path(given: str) -> Source:
    path = paths.source(given)
    return Source(str(path), path)


def _refuse_nameless(called: str, source: Source) -> None:
    if not called:
        raise AnnotatorError(f"Give the model a name, under which what {source.name} says is kept.")
    if isinstance(source.path, Address) or source.path.is_dir():
        raise AnnotatorError(ONE_FILE)
