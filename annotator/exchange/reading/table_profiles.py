"""The tables of known tools, each recognized by the names of its columns and never by what is in them.

A profile says what the columns of a tool mean. What it leaves open is decided or asked as for any other table, and the
options of the user come first. To add a tool, add an entry to TABLE_PROFILES with columns that only its tables have.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from annotator.errors import AnnotatorError
from annotator.exchange.reading.reading_options import NONE_VALUE, ReadingOptions, parse_kept_rows


@dataclass(frozen=True)
class TableProfile:
    """What the columns of a tool's tables mean.

    Attributes:
        tool: Its name, for the preview.
        signature: Columns that a table must have, all of them, in lower case.
        image: Columns that name the image, the first that the table has counts.
        labels: Columns that name present classes.
        separator: Between the labels of a cell, or NONE_VALUE.
        kept_rows: Rules as of --rows, the first whose column the table has counts.
        fields: Columns that never name classes, in lower case.
        refusal: Why such a table cannot be read, and what to do, or "".
    """

    tool: str
    signature: frozenset[str]
    image: Sequence[str] = ()
    labels: Sequence[str] = ()
    separator: str | None = None
    kept_rows: Sequence[str] = ()
    fields: frozenset[str] = frozenset()
    refusal: str = ""


TABLE_PROFILES = (
    TableProfile(
        "EcoTaxa",  # https://ecotaxa.obs-vlfr.fr: its second row holds the types [t] and [f]
        frozenset(("img_file_name", "object_id", "object_annotation_category")),
        image=("img_file_name",),
        labels=("object_annotation_category",),
        separator=NONE_VALUE,
        kept_rows=("object_annotation_status=validated", "img_file_name!=[t],[f]"),
    ),
    TableProfile(
        "CoralNet",  # https://coralnet.ucsd.edu: a point that the machine alone annotated has the annotator robot
        frozenset(("name", "row", "column", "label", "annotator")),
        image=("name",),
        labels=("label",),
        separator=NONE_VALUE,
        kept_rows=("annotator!=robot,alleviate",),
    ),
    TableProfile(
        "Camelot",  # https://camelotproject.org: a full export has a row for each sighting
        frozenset(("media filename", "species scientific name", "species common name", "sighting quantity")),
        image=("absolute path", "media filename"),
        labels=("species scientific name",),
        separator=NONE_VALUE,
    ),
    TableProfile(
        "Amazon Mechanical Turk",  # https://docs.aws.amazon.com/AWSMechTurk: the answer columns are the requester's own
        frozenset(("hitid", "hittypeid", "assignmentid", "workerid", "assignmentstatus")),
        kept_rows=("assignmentstatus!=rejected",),
        fields=frozenset(
            "hitid hittypeid title description keywords reward assignmentid workerid assignmentstatus".split()
        ),
    ),
    TableProfile(
        "BigEarthNet",  # https://bigearth.net, version 2: metadata.parquet
        frozenset(("patch_id", "labels", "split", "country", "contains_seasonal_snow", "contains_cloud_or_shadow")),
        image=("patch_id",),
        labels=("labels",),
        separator=NONE_VALUE,
    ),
    TableProfile(
        "Zooniverse",  # https://help.zooniverse.org: one row for each classification of a volunteer
        frozenset(("classification_id", "workflow_id", "annotations", "subject_data")),
        refusal="each row holds the answers of one volunteer as JSON. First make a table with the columns image and "
        "label, one row for each image and answer (panoptes_aggregation does)",
    ),
)
"""Each table fits at most one of them."""


def find_table_profile(names: Sequence[str]) -> TableProfile | None:
    """Return the profile whose columns a table has, or None."""
    header = {name.strip().lower() for name in names}
    return next((profile for profile in TABLE_PROFILES if profile.signature <= header), None)


def apply_table_profile(profile: TableProfile, names: Sequence[str], options: ReadingOptions) -> ReadingOptions:
    """Return the options of the user, completed with what a profile says.

    Raises AnnotatorError for a table that cannot be read.
    """
    if profile.refusal:
        raise AnnotatorError(f"This is a table of {profile.tool}, and it cannot be read: {profile.refusal}.")
    name_by_lower = {name.strip().lower(): name for name in names}
    image = next((name_by_lower[name] for name in profile.image if name in name_by_lower), None)
    labels = tuple(name_by_lower[name] for name in profile.labels)
    kept = next((rule for rule in profile.kept_rows if parse_kept_rows(rule).column in name_by_lower), None)
    is_told = options.label_columns is not None or options.class_columns is not None
    return replace(
        options,
        image_column=options.image_column or image,
        label_columns=options.label_columns if is_told or not labels else labels,
        separator=options.separator if is_told else options.separator or profile.separator,
        kept_rows=options.kept_rows or kept,
    )


def describe_table_profile(profile: TableProfile) -> str:
    """Return a sentence that names the tool and the columns by which it is recognized."""
    return f"the columns are those of {profile.tool}: {', '.join(sorted(profile.signature))}"
