"""The meaning of columns by their names, and the lookup of columns that the user names."""

import re
from collections.abc import Sequence

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.reading.cell_words import Cell, normalize_word
from annotator.store.pictures.files import looks_like_image

IMAGE_COLUMN_NAMES = (
    "image imagename imagefile imagefilename filename file filepath imagepath path imgpath imgname imgfile img imageid "
    "imageindex isicid imgid photo photoid picture media mediaid url imageurl fileurl name id uuid"
).split()
"""Names of the column of images, the most telling first."""
FOLDER_COLUMN_NAMES = (
    "relativepath",
    "folder",
    "directory",
    "dir",
    "subfolder",
    "subdirectory",
    "subdir",
    "folderpath",
)
SPLIT_COLUMN_NAMES = ("split", "subset", "fold", "partition")
SCORE_COLUMN_NAMES = (
    "score scores confidence conf confidencescore probability prob logit likelihood predictionscore predscore "
    "classificationscore classificationprobability cvconfidence detectionconf maxdetectionconf agreement votes nvotes "
    "votefraction votesfraction"
).split()
LABEL_COLUMN_PATTERN = re.compile(
    r"(image|img)?((label|class|category)ids?|label|labels|labelname|class|classes|classname|classnames|"
    r"classlabel|category|categories|categoryname|tag|tags|species|speciesname|commonname|scientificname|"
    r"vernacularname|taxon|taxonname|finding|"
    r"findings|findinglabels|findinglabel|diagnosis|diagnoses|dx|object|objects|keyword|keywords|target|targets|animal|"
    r"animals|concept|concepts)(?P<number>\d*)"
)
RANK_COLUMN_NAMES = frozenset(
    "kingdom phylum class order family subfamily tribe genus subgenus species specificepithet epithet "
    "infraspecificepithet".split()
)
"""Names of columns that are ranks of a taxonomy. Which of them names the classes is always a question."""
BOX_COLUMN_NAMES = frozenset("xmin ymin xmax ymax x1 y1 x2 y2 bbox bboxx bboxy bboxw bboxh bndbox segmentation".split())
"""Names of columns of boxes, which are not read."""
FACT_COLUMN_NAMES = BOX_COLUMN_NAMES | frozenset(
    "split subset fold partition group location license licence width height missing framenum framenumber "
    "datetime timestamp latitude longitude lat lon lng cameraid deploymentid bytes unnamed0 rootfolder deleteflag "
    "iscrowd filepublic istrain istest isval istraining isvalid seqid seqnum seqnumframes eventid sha256 md5 hash "
    "createdat updatedat imagequality numberofobjects objectcount patientid".split()
)
"""Names of columns that are facts of an image, and never classes."""
AMBIGUOUS_COLUMN_NAMES = frozenset(
    "count number quantity frame date time year month day hour minute site station camera deployment temperature "
    "moon size index verified reviewed checked flagged flag occluded truncated difficult place favorite favourite "
    "exported public train test val valid validation event sequence annotator user author comment note notes "
    "remark age sex row box region left right top bottom area x y w h start end begin stop duration".split()
)
"""Names that are usually facts, but may be classes where the cells are answers: COCO has the class train."""


def lookup(name: str, names: Sequence[str], option: str) -> int:
    """Return the index of a column that the user named. Raises AnnotatorError that lists all columns."""
    if name in names:
        return names.index(name)
    same = [place for place, other in enumerate(names) if normalize_word(other) == normalize_word(name)]
    if len(same) == 1:
        return same[0]
    raise AnnotatorError(f"{option} {name}: there is no such column. {did_you_mean(name, names, len(names))}")


def parse_label_column(name: str) -> tuple[str, int] | None:
    """Return the word and number in the name of a label column ("Label_2"), or None for other names."""
    match = LABEL_COLUMN_PATTERN.fullmatch(normalize_word(name))
    if not match:
        return None
    return normalize_word(name).removesuffix(match["number"]), int(match["number"] or 0)


def ends_as_label_column(name: str) -> bool:
    """Return whether a column's name ends as that of a label column, such as corrected_label, and is none itself."""
    word = normalize_word(name)
    is_rank = word in RANK_COLUMN_NAMES
    return (
        not is_rank and not parse_label_column(name) and word.endswith(("label", "labels", "class", "species", "tags"))
    )


def is_score_column(name: str) -> bool:
    """Return whether a column's name says that a model's scores are in it."""
    word = normalize_word(name)
    return word in SCORE_COLUMN_NAMES or word.endswith(("confidence", "confidences", "probability", "probabilities"))


def compute_image_share(cells: Sequence[Cell]) -> float:
    """Return the share of image file names among the non-empty cells."""
    texts = [text.split("?")[0].strip() for text in cells if isinstance(text, str) and text.strip()]
    return sum(looks_like_image(text.replace("\\", "/")) for text in texts) / len(texts) if texts else 0.0


def is_fact_column(name: str) -> bool:
    """Return whether a column's name marks it as a metadata field, never as labels or a class."""
    word = normalize_word(name)
    return (
        not word
        or word == "id"
        or word in FACT_COLUMN_NAMES
        or (word.endswith("id") and name.lower().endswith(("_id", " id")))
    )
