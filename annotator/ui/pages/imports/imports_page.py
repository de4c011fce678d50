"""The Import page: start, preview, store and undo imports, one at a time per project."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.formats import all_formats, match_formats
from annotator.exchange.imports import import_plan
from annotator.exchange.predictions import prediction_import
from annotator.exchange.predictions.score_files import OWN_FORMATS
from annotator.exchange.sources.fetch_folder import format_size
from annotator.store.database.database import Database
from annotator.store.locations.addresses import Address
from annotator.store.runs.prediction_sources import MAX_NAME_CHARACTERS, PROBABILITY, SCORE
from annotator.ui.access import served_project
from annotator.ui.pages.imports import import_history, import_preview
from annotator.ui.pages.imports.import_runner import (
    ONE_FILE_MESSAGE,
    ImportRequest,
    ImportRunner,
    ImportState,
    get_import_runner,
)
from annotator.ui.pages.imports.upload_component import mount_upload
from annotator.ui.pages.imports.uploaded_files import UploadedFiles, get_uploads
from annotator.ui.shared import html_tables, widget_values
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.message_boxes import show_error, show_errors
from annotator.ui.shared.page_access import build_fragment
from annotator.ui.shared.work import readable_paths

REFRESH_SECONDS = 0.5  # seconds, while an import is at work
LABELS_KIND, PREDICTIONS_KIND = "Labels and images", "Predictions of another model"
UPLOAD_PLACE, PATH_PLACE = "Upload", "Path or address"
DEFAULT_FIELDS = {
    "import_kind": LABELS_KIND,
    "import_place": UPLOAD_PLACE,
    **dict.fromkeys(("import_path", "import_images", "import_called", "import_rows", "import_columns"), ""),
    "import_scale": PROBABILITY,
    f"import_format_{LABELS_KIND}": "",
    f"import_format_{PREDICTIONS_KIND}": "",
}
"""The fields that say where an import comes from, and what they hold at first."""
ALL_FILES = "All files together"
SCALE_TITLES = {
    PROBABILITY: "Probabilities, from 0 to 1",
    SCORE: "Other scores: only their order within a class counts",
}
KIND_DESCRIPTIONS = {
    LABELS_KIND: "Labels, images, notes and facts from elsewhere. You see first what would change.",
    PREDICTIONS_KIND: "What a detector, tagger or language model says. Your answers decide how far it is believed.",
}


@dataclass(frozen=True)
class ImportSource:
    """The file, folder or URL that a person chose to import."""

    name: str
    path: Address | Path
    upload: UploadedFiles | None = None


def page() -> None:
    with show_errors():
        name, db = require_annotator_name(), served_project.db()
        work = get_import_runner(db)
        st.subheader("Import")
        state = work.state  # of one moment for all of the page
        _restore_fields(name, state)
        if not state.is_open:
            _draw_source_form(db, name, work)
        if state.is_at_work:
            build_fragment(import_preview.draw_progress, REFRESH_SECONDS)(work)
        else:
            import_preview.draw_outcome(db, name, work, state)
        import_history.draw_predictions(db)
        import_history.draw_imports(db, name)


def _restore_fields(by: str, state: ImportState) -> None:
    """Fill the form with the person's open import, and restore typed fields that Streamlit forgot."""
    fields, order = st.session_state, state.order
    if "import_kind" not in fields and order and order.by == by:
        fields["import_kind"] = PREDICTIONS_KIND if order.is_predictions else LABELS_KIND
        fields["import_called"] = order.predictions_name
        if not order.upload:
            fields["import_place"], fields["import_path"] = PATH_PLACE, order.name
    for key, first in DEFAULT_FIELDS.items():
        widget_values.restore_widget(key, first)


def _draw_source_form(db: Database, by: str, work: ImportRunner) -> None:
    with st.container(horizontal=True, gap="medium"):
        kind = (
            st.segmented_control("What", (LABELS_KIND, PREDICTIONS_KIND), required=True, key="import_kind")
            or LABELS_KIND
        )
        place = st.segmented_control("From", (UPLOAD_PLACE, PATH_PLACE), required=True, key="import_place")
    st.caption(KIND_DESCRIPTIONS[kind])
    upload = _draw_upload(db, by) if place == UPLOAD_PLACE else None
    if place == UPLOAD_PLACE and upload is None:
        return
    with st.form("import_source", border=False):
        given = (
            "" if upload else _draw_path_field("File, folder, archive or address" if kind == LABELS_KIND else "File")
        )
        chosen = _choose_file(upload) if upload else ""
        called, scale = _draw_model_fields() if kind == PREDICTIONS_KIND else ("", PROBABILITY)
        format_ = st.selectbox(
            "Format",
            ["", *_list_formats(kind)],
            format_func=lambda name: _list_formats(kind)[name] if name else "Recognize it",
            key=f"import_format_{kind}",
        )
        companions = _choose_companions(upload) if kind == PREDICTIONS_KIND else (None, None)
        images = "" if upload or kind == PREDICTIONS_KIND else _draw_images_field()
        wanted = st.form_submit_button("Preview", type="primary")
    if not wanted:
        return
    try:
        source = _build_upload_source(upload, chosen) if upload else _build_path_source(given)
        if kind == LABELS_KIND:
            folder = readable_paths.resolve_folder(images) if images.strip() else None
            taken = import_plan.ImportOptions(format_ or None, folder, may_be_own=False)
            choices: import_plan.ImportOptions | prediction_import.PredictionOptions = taken
        else:
            rows, columns = (_find_companion(source, one) for one in companions)
            choices = prediction_import.PredictionOptions(format_ or None, scale, {}, rows, columns, only_known=True)
            _check_predictions_source(called, source)
        work.start(ImportRequest(by, source.name, source.path, choices, upload.folder if upload else None, called))
    except AnnotatorError as error:
        show_error(error)
    else:
        st.rerun()


def _draw_upload(db: Database, by: str) -> UploadedFiles | None:
    mount_upload()
    upload = get_uploads(db).get_files(by)
    if upload is None:
        return None
    rows = [{"Uploaded": name, "Size": format_size(size)} for name, size in upload.files]
    html_tables.show(rows, "Uploaded files")
    if st.button("Remove", key="import_remove_upload"):
        get_uploads(db).remove_files(by)
        st.rerun()
    return upload


def _draw_path_field(title: str) -> str:
    return st.text_input(
        title,
        placeholder="/home/ann/birds/instances.json",
        help="On the machine that runs Annotator, or an address (https, s3, gs). Archives are unpacked.",
        key="import_path",
    )


def _choose_file(upload: UploadedFiles) -> str:
    """Return the upload's file to read, or ALL_FILES for folder formats."""
    names = [name for name, _ in upload.files]
    if len(names) == 1:
        return names[0]
    guess = ALL_FILES if match_formats(upload.folder) else _find_likeliest_file(upload.folder, names)
    options = [*names, ALL_FILES]
    key = f"import_which_{'|'.join(names)}"
    return st.selectbox("Read", options, index=options.index(guess), key=key) or guess


def _find_likeliest_file(folder: Path, names: Sequence[str]) -> str:
    """Return the file to read: the first of a recognized format, else the first (names with few dots come first)."""
    plain = sorted(names, key=lambda name: (name.count("."), name))
    return next((name for name in plain if match_formats(folder / name)), plain[0])


def _draw_model_fields() -> tuple[str, str]:
    called = st.text_input(
        "Name of the model", placeholder="yolo-world", max_chars=MAX_NAME_CHARACTERS, key="import_called"
    ).strip()
    scale = st.radio("Its numbers are", list(SCALE_TITLES), format_func=SCALE_TITLES.__getitem__, key="import_scale")
    return called, scale


def _list_formats(kind: str) -> dict[str, str]:
    formats = {name: format_ for name, format_ in all_formats().items() if format_.read}
    own = {name: f"{name}: a table or array of scores" for name in OWN_FORMATS} if kind == PREDICTIONS_KIND else {}
    return own | {name: f"{name}: {format_.about}" for name, format_ in formats.items() if name not in own}


def _choose_companions(upload: UploadedFiles | None) -> tuple[str, str]:
    """Return the files that name the rows and columns of a .npy array, or ""."""
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


def _find_companion(source: ImportSource, name: str | None) -> Path | None:
    if not name:
        return None
    path = None if isinstance(source.path, Address) else source.path.with_name(Path(name).name)
    if path is None or not path.is_file():
        raise AnnotatorError(f"{Path(name).name} does not lie beside {source.name}.")
    return path


def _draw_images_field() -> str:
    return st.text_input(
        "Folder with the images, if they are new",
        placeholder="/home/ann/birds/images",
        help="Only needed for images that the project does not have yet.",
        key="import_images",
    )


def _build_upload_source(upload: UploadedFiles, chosen: str) -> ImportSource:
    if chosen == ALL_FILES:
        return ImportSource(", ".join(name for name, _ in upload.files), upload.folder, upload)
    return ImportSource(chosen, upload.folder / chosen, upload)


def _build_path_source(given: str) -> ImportSource:
    path = readable_paths.resolve_source(given)
    return ImportSource(str(path), path)


def _check_predictions_source(called: str, source: ImportSource) -> None:
    if not called:
        raise AnnotatorError(f"Give the model a name, under which what {source.name} says is kept.")
    if isinstance(source.path, Address) or source.path.is_dir():
        raise AnnotatorError(ONE_FILE_MESSAGE)
