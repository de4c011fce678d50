"""Datumaro: reads its own folder, or with the argument cvat a CVAT file, and says which classes each item has."""

import sys

import datumaro
from loop import Cells, serve

FORMAT = sys.argv[1]


def read(path: str, again: str) -> Cells:
    """Items of Datumaro's own format by their image's name in the attributes, those of CVAT by their path."""
    data = datumaro.Dataset.import_from(path, FORMAT)
    if again:
        data.export(again, FORMAT, save_media=False)
    labels = data.categories()[datumaro.AnnotationType.label]
    cells: Cells = {}
    for item in data:
        present = {labels[annotation.label].name: "present" for annotation in item.annotations}
        if FORMAT == "cvat":
            cells[item.media.path] = present
            continue
        states = {name: state for state in ("absent", "unsure") for name in item.attributes[state]}
        cells[item.attributes["multilabel-annotator"]["image"]] = present | states
    return cells


serve(read)
