"""The table profiles of known tools. A tool is one entry of TABLE_PROFILES, and the first that fits applies."""

from collections.abc import Sequence

from annotator.exchange.reading.row_rules import RowRule
from annotator.exchange.reading.table_profile import TableProfile

_CORALNET_LABELS = ("Label code", "Label", "Label ID")
"""Columns of CoralNet with labels; the second is that of exports before 2024."""
_ABSENT_OCCURRENCE = RowRule("occurrenceStatus", "occurrenceStatus is absent", frozenset(("absent",)))

TABLE_PROFILES: tuple[TableProfile, ...] = (
    TableProfile(
        "EcoTaxa",
        "a TSV export (https://ecotaxa.obs-vlfr.fr)",
        ("img_file_name", "object_id", "object_annotation_category"),
        "img_file_name",
        ("object_annotation_category",),
        left_out=(
            RowRule(
                "img_file_name", "the second line gives the column types in img_file_name", frozenset(("[t]", "[f]"))
            ),
            RowRule(
                "object_annotation_status",
                "object_annotation_status is not validated",
                kept=frozenset(("validated", "v")),
            ),
        ),
    ),
    *(
        TableProfile(
            "CoralNet",
            "an annotation export (https://coralnet.ucsd.edu)",
            ("Name", "Row", "Column", label, "Annotator"),
            "Name",
            (label,),
            left_out=(RowRule("Annotator", "Annotator is a model", frozenset(("robot", "alleviate"))),),
        )
        for label in _CORALNET_LABELS
    ),
    *(
        TableProfile(
            "CoralNet",
            "without the column Annotator, labels of the robot look like those of people",
            ("Name", "Row", "Column", label),
            "Name",
            (label,),
            is_question=True,
        )
        for label in _CORALNET_LABELS
    ),
    TableProfile(
        "Mechanical Turk",
        "batch results (https://docs.aws.amazon.com/AWSMechTurk)",
        ("HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "Input.*", "Answer.*"),
        "Input.*",
        ("Answer.*",),
        left_out=(
            RowRule("AssignmentStatus", "AssignmentStatus is Rejected", frozenset(("rejected",))),
            RowRule("Reject", "Reject is filled in"),
        ),
    ),
    TableProfile(
        "Camelot",
        "the full export (https://camelot-project.readthedocs.io)",
        ("Media Filename", "Species Scientific Name", "Species Common Name", "Sighting Quantity"),
        "Media Filename",
        ("Species Scientific Name",),
    ),
    TableProfile(
        "Zooniverse classifications",
        "the raw classification export (https://help.zooniverse.org)",
        ("classification_id", "workflow_id", "annotations", "subject_data"),
        refusal=(
            "Its labels and image names are JSON inside the cells of annotations and subject_data, and are not read. "
            "Flatten it first: write a table with the columns image and label, one row per choice. The image is the "
            "file name in subject_data, and the label is `choice` in annotations. Then import that table."
        ),
    ),
    TableProfile(
        "a flattened Zooniverse survey",
        "each choice of each volunteer would be present (https://github.com/zooniverse/Data-digging)",
        ("subject_id", "user_name", "created_at", "choice"),
        label_columns=("choice",),
        is_question=True,
    ),
    *(
        TableProfile(
            "exiftool",
            "tags of exiftool -csv, whose keywords are labels (https://exiftool.org)",
            ("SourceFile", keywords),
            "SourceFile",
            ("HierarchicalSubject", "Subject"),
            separator=", ",
            path_mark="|",
            is_question=True,
        )
        for keywords in ("HierarchicalSubject", "Subject")
    ),
    TableProfile(
        "GBIF",
        "an occurrence download (https://techdocs.gbif.org)",
        ("gbifID", "scientificName"),
        label_columns=("scientificName",),
        left_out=(_ABSENT_OCCURRENCE,),
    ),
    TableProfile(
        "Darwin Core",
        "occurrences (https://dwc.tdwg.org/terms)",
        ("occurrenceID", "scientificName"),
        label_columns=("scientificName",),
        left_out=(_ABSENT_OCCURRENCE,),
    ),
    TableProfile(
        "Darwin Core",
        "names in two columns (https://dwc.tdwg.org/terms)",
        ("genus", "specificEpithet"),
        joined_columns=("genus", "specificEpithet"),
        left_out=(_ABSENT_OCCURRENCE,),
    ),
    TableProfile(
        "a taxonomy",
        "genus and species may be the two words of one name, or species is the whole name",
        ("genus", "species"),
        label_columns=("species",),
        joined_columns=("genus", "species"),
        is_question=True,
    ),
    TableProfile(
        "BigEarthNet v2",
        "metadata.parquet (https://bigearth.net)",
        ("patch_id", "labels", "split", "country"),
        "patch_id",
        ("labels",),
    ),
)


def find_table_profile(names: Sequence[str]) -> TableProfile | None:
    return next((one for one in TABLE_PROFILES if one.fits(names)), None)
