"""Exported classifiers, run by onnxruntime without torch.

    classifier = annotator.load_classifier("birds.onnx")
    classifier(["0118.jpg", "0119.jpg"])        # (2, C) float32, the columns are classifier.classes

Probabilities equal those computed in torch.
"""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange.classifier.description import METADATA_KEY, Description, parse_description
from annotator.store.pictures.appearance import GRAY_SIDE_PIXELS
from annotator.store.pictures.decoding import open_rgb

INPUT_NAME, OUTPUT_NAME = "images", "probabilities"
MAX_MODEL_BYTES = 2_000_000_000  # of an ONNX file; it is read into memory, so that it cannot name other files
IMAGES_PER_BATCH = 8  # images in one pass
INSTALL_COMMAND = "pip install 'multilabel-annotator[classifier]'"
_RESAMPLING_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}

Picture = str | PathLike[str] | BinaryIO | Image.Image | np.ndarray
"""An image: its file, an open file, a picture of Pillow, or pixels (h, w, 3) uint8 in RGB."""


class Classifier:
    """A loaded classifier, safe to share between threads.

    Attributes:
        description: Classes, thresholds and preprocessing.
    """

    description: Description

    def __init__(self, session: Any, description: Description):
        """Wrap an onnxruntime session. Use `load_classifier` instead."""
        self._session, self.description = session, description

    @property
    def classes(self) -> list[str]:
        """Return the class names in probability column order."""
        return [class_.name for class_ in self.description.classes]

    def __call__(self, images: Iterable[Picture]) -> np.ndarray:
        """Return the probability of every class in every image.

        Args:
            images: N images, read in batches.

        Returns:
            (N, C) float32 in [0, 1].

        Raises:
            BadImage: Unreadable image.
            AnnotatorError: Invalid output.
        """
        parts = [self.of_pixels(batch) for batch in _make_batches(self.pixels(image) for image in images)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes)), np.float32)

    def pixels(self, image: Picture) -> np.ndarray:
        """Return an image as network input, resized to a square.

        Args:
            image: Arrays are (h, w, 3) uint8, RGB.

        Returns:
            (3, S, S) uint8, RGB.

        Raises:
            BadImage: Unreadable image.
            ValueError: Other array.
        """
        if isinstance(image, np.ndarray):
            if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
                raise ValueError(f"Pixels must be (h, w, 3) uint8, not {image.shape} {image.dtype}.")
            picture = Image.fromarray(image)
        elif isinstance(image, Image.Image):
            picture = image.convert("RGB")
        else:
            least = max(self.description.size, GRAY_SIDE_PIXELS)
            source = Path(image) if isinstance(image, str | PathLike) else image
            picture = open_rgb(source, at_least=(least, least))  # as features were made
        side = self.description.size
        squashed = picture.resize((side, side), _RESAMPLING_FILTERS[self.description.interpolation])
        return np.asarray(squashed).transpose(2, 0, 1)

    def of_pixels(self, pixels: Sequence[np.ndarray]) -> np.ndarray:
        """Return the probabilities of a batch in one forward pass.

        Args:
            pixels: n images from `pixels`.

        Returns:
            (n, C) float32 in [0, 1].

        Raises:
            AnnotatorError: Invalid output.
        """
        try:
            result = np.asarray(self._session.run([OUTPUT_NAME], {INPUT_NAME: np.stack(pixels)})[0], np.float32)
        except Exception as error:  # onnxruntime raises many kinds, none of which tells a person what to do
            raise AnnotatorError(
                f"The classifier cannot be run ({_first_line(error)}). Make its file again: "
                "annotator classifier PROJECT FILE"
            ) from error
        wanted = (len(pixels), len(self.classes))
        if result.shape != wanted or not np.isfinite(result).all() or result.min() < 0 or result.max() > 1:
            raise AnnotatorError(
                f"The classifier does not give {wanted[1]} probabilities an image, as its description says, but an "
                f"array {result.shape}. Its file was made by another program, or changed."
            )
        return result


def load_classifier(path: str | PathLike[str], *, threads: int = 0) -> Classifier:
    """Load a classifier from an ONNX file that `annotator classifier` wrote.

    Args:
        path: May be untrusted: onnxruntime gets only the content, so it loads no code or other file.
        threads: Compute threads. 0 selects one per core.

    Returns:
        The classifier.

    Raises:
        AnnotatorError: The file is invalid, or onnxruntime missing.
    """
    path = Path(path)
    if path.suffix.lower() in (".safetensors", ".json"):
        raise AnnotatorError(
            f"{path} is for torch, and is read as docs/classifier.md shows. What runs here is an ONNX file: "
            "annotator classifier PROJECT FILE.onnx"
        )
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise AnnotatorError(f"{path} is not a file. Name the ONNX file that annotator classifier wrote.")
        if size > MAX_MODEL_BYTES:
            raise AnnotatorError(f"{path} has {size:,} bytes; at most {MAX_MODEL_BYTES:,} are read.")
        content = path.read_bytes()
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be read: {error.strerror}.") from None
    session = _create_session(content, path, threads)
    text = session.get_modelmeta().custom_metadata_map.get(METADATA_KEY)
    if text is None:
        raise AnnotatorError(f"{path} is an ONNX file of another program: it does not say which classes it knows.")
    description = parse_description(text, str(path))
    _check_inputs_and_outputs(session, description, path)
    return Classifier(session, description)


def _create_session(content: bytes, path: Path, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise AnnotatorError(f"onnxruntime is not installed. Install it with: {INSTALL_COMMAND}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # its warnings are about the file's nodes and help nobody
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises many kinds
        raise AnnotatorError(
            f"{path} is no ONNX file that onnxruntime {onnxruntime.__version__} can run ({_first_line(error)}). It may "
            "not have been written whole, or be of a later version: make it again, or install a newer onnxruntime."
        ) from None


def _check_inputs_and_outputs(session: Any, description: Description, path: Path) -> None:
    inputs, outputs = session.get_inputs(), session.get_outputs()
    side, classes = description.size, len(description.classes)
    takes = len(inputs) == 1 and inputs[0].name == INPUT_NAME and inputs[0].type == "tensor(uint8)"
    takes = takes and list(inputs[0].shape[1:]) == [3, side, side]
    gives = len(outputs) == 1 and outputs[0].name == OUTPUT_NAME and list(outputs[0].shape[1:]) == [classes]
    if not (takes and gives):
        ends = [f"{end.name} {end.shape}" for end in (*inputs, *outputs)]
        raise AnnotatorError(
            f"{path} is no classifier that can be used: it has {', '.join(ends)}, and not {INPUT_NAME} (n, 3, {side}, "
            f"{side}) and {OUTPUT_NAME} (n, {classes}). It was changed, or made by another program."
        )


def _make_batches(pixels: Iterable[np.ndarray]) -> Iterator[list[np.ndarray]]:
    batch: list[np.ndarray] = []
    for one in pixels:
        batch.append(one)
        if len(batch) == IMAGES_PER_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300].rstrip(".")
