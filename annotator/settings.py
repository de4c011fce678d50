"""Paths inside a project folder, and all defaults."""

import getpass
import hashlib
from dataclasses import dataclass
from pathlib import Path

DEFAULT_METHOD = "auto"
DEFAULT_BACKBONE = "efficientnet_lite0_320"
DEFAULT_ORDER = "random"  # query order of single images: the images labeled first are then a random sample

LEFT_OUT_SETTING = "left_out"  # the setting that lists what the last training could not use

IMPORT_ANNOTATOR = "import"  # the annotator named on decisions that came from a file
TAGGER_KEY_VARIABLE = "ANNOTATOR_TAGGER_KEY"  # one of its own, so that no key of another program is sent

MIN_IMAGES_FOR_FIRST_RUN = 20  # labeled images before the worker trains by itself: with fewer, suggestions mislead
MIN_HEATMAP_POSITIVES = 20  # positives of a class below which its heat maps are marked as early
DEFAULT_REVIEW_THRESHOLD = 0.5
MAX_CHIPS_PER_IMAGE = 8  # suggestions shown with one image, the likeliest first
PREFETCHED_HEATMAP_IMAGES = 16  # first images of the review queue whose heat maps are made in advance
KEPT_RUN_COUNT = 3  # arrays and heat maps of older runs are deleted; their rows stay

LEASE_SECONDS = 150.0  # a browser renews every minute; a closed one frees its images after this
HEARTBEAT_SECONDS = 1.0
WORKER_TIMEOUT_SECONDS = 15.0  # without a heartbeat the worker is gone, without progress it is slow
WORKER_HUNG_SECONDS = 900.0  # without progress of a living worker, after which it counts as hung
DISPLAY_PIXELS = 1600  # longest side of a picture sent to a browser; copies of larger files are made once
THUMB_PIXELS = 320  # the same in the grid and on the map
DECODER_VERSION = "3"  # increased when decoding.py decodes some files differently: older copies are made again
BUSY_EXIT_STATUS = 3  # exit status of a worker started by the app that found another one at work
DEFAULT_PORT = 8501
SAMPLE_DATA_FOLDER = Path(__file__).resolve().parent.parent / "sample_data"  # drawn images, and a list of their classes


MAX_FOLDER_NAME_BYTES = 200  # bytes of a folder's name; disks allow 255, and some names get an ending
DATABASE_FILE = "project.db"
IMPORTED_FOLDER = "imported"  # the folder of what was unpacked or downloaded into the project
EXPORTS_FOLDER = "exports"  # the only folder of a project that exports are written to
UNFINISHED_DATABASE_FILE = "project.db.unfinished"  # the name of a new project's database until it is complete


@dataclass(frozen=True)
class Paths:
    """The paths in one project folder.

    Attributes:
        project: The project folder.
        file: Database file name.
    """

    project: Path
    file: str = DATABASE_FILE

    @property
    def database(self) -> Path:
        """Return the SQLite file."""
        return self.project / self.file

    @property
    def decision_record(self) -> Path:
        """Return the file with the newest decision id, which reveals lost decisions."""
        return self.project / "newest-decision"

    @property
    def secret(self) -> Path:
        """Return the signing key of `annotator serve`."""
        return self.project / "secret"

    @property
    def opener_page(self) -> Path:
        """Return the local HTML page through which the browser gets its login key."""
        return self.project / "open.html"

    @property
    def thumbs(self) -> Path:
        """Return the folder of image copies for the browser."""
        return self.project / "thumbs"

    @property
    def fetched_images(self) -> Path:
        """Return the cache folder of remote images."""
        return self.project / "fetched"

    @property
    def runs(self) -> Path:
        """Return the folder of arrays of all trainings."""
        return self.project / "runs"

    @property
    def first_orders(self) -> Path:
        """Return the folder of image orders for use before the first training."""
        return self.project / "first_orders"

    @property
    def heatmaps(self) -> Path:
        """Return the heat map folder."""
        return self.project / "heatmaps"

    @property
    def selections(self) -> Path:
        """Return the folder of image selections from the map."""
        return self.project / "selections"

    @property
    def tags(self) -> Path:
        """Return the folder of the labels of tagged exports."""
        return self.project / "tags"

    @property
    def exports(self) -> Path:
        """Return the server's export folder."""
        return self.project / EXPORTS_FOLDER

    @property
    def downloads(self) -> Path:
        """Return the temporary downloads folder."""
        return self.project / "downloads"

    @property
    def audits(self) -> Path:
        """Return the folder of the cells that audits were drawn from."""
        return self.project / "audits"

    def predictions(self, source_id: int, version: int | None = None) -> Path:
        """Return the folder of an external model's predictions, of one version or (None) of all."""
        folder = self.project / "predictions" / str(source_id)
        return folder if version is None else folder / str(version)

    def patch_scores(self, wording: str) -> Path:
        """Return the folder of image patch scores for one set of class prompts."""
        return self.project / "predictions" / "names" / wording

    @property
    def worker_lock(self) -> Path:
        """Return the worker's lock."""
        return self.project / "worker.lock"

    @property
    def server_lock(self) -> Path:
        """Return the server's lock."""
        return self.project / "server.lock"

    @property
    def worker_log(self) -> Path:
        """Return the worker's log."""
        return self.project / "worker.log"

    def features(self, backbone: str) -> Path:
        """Return the folder of a backbone's embeddings, or of all backbones for ""."""
        return self.project / "features" / _to_folder_name(backbone)

    def adapted_network(self, name: str) -> Path:
        """Return the folder of an adapted backbone, or of all for ""."""
        return self.project / "adapted" / _to_folder_name(name)

    @property
    def unfinished_adaptation(self) -> Path:
        """Return the folder for resuming an adaptation."""
        return self.project / "adapting"

    def map(self, backbone: str) -> Path:
        """Return the folder of a backbone's map of images, or of all maps for ""."""
        return self.project / "map" / _to_folder_name(backbone)

    def image_copy(self, image_id: int, kind: str) -> Path:
        """Return the path of an image copy for the browser."""
        return self.thumbs / str(image_id // 1000) / f"{image_id}-{kind}-{DECODER_VERSION}.jpg"

    def old_image_copies(self, image_id: int, kind: str) -> list[Path]:
        """Return the paths of an image's browser copies that older program versions wrote."""
        copy = self.thumbs / str(image_id // 1000) / f"{image_id}-{kind}.jpg"
        return [copy, self.thumbs / f"{image_id}.jpg"] if kind == "display" else [copy]

    def run(self, run_id: int, version: int = 0) -> Path:
        """Return the folder of a training's arrays (`version` 0), or of a later update of them."""
        return self.runs / str(run_id) / f"v{version}" if version else self.runs / str(run_id)

    def heatmap(self, run_id: int, image_id: int, class_id: int) -> Path:
        """Return the path of one training's heat map for an image and a class."""
        return self.heatmaps / str(run_id) / f"{image_id}-{class_id}.png"

    def heatmap_findings(self, run_id: int, class_id: int) -> Path:
        """Return the file that lists other classes that a class's heat maps of this run may show instead."""
        return self.heatmaps / str(run_id) / f"{class_id}.json"


def _to_folder_name(backbone: str) -> str:
    # A backbone's name may hold a slash or a dot (timm: "hf-hub:...", "resnet50.a1_in1k").
    name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in backbone)
    if name and not name.strip("."):  # "." and ".." are other folders
        name = name.replace(".", "_")
    # Of several joined networks it may be longer than a disk allows.
    return (
        name
        if len(name.encode()) <= MAX_FOLDER_NAME_BYTES
        else f"{name[:60]}-{hashlib.sha256(backbone.encode()).hexdigest()[:16]}"
    )


def get_login_name() -> str:
    """Return the login name (or "somebody"), which is the default annotator."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
