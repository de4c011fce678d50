"""Writes a classifier and its model card, all files or none."""

import contextlib
import glob
import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.classifier.description import METADATA_KEY, Description
from annotator.exchange.classifier.model_card import format_model_card
from annotator.exchange.classifier.onnx_classifier import INPUT_NAME, INSTALL_COMMAND, OUTPUT_NAME
from annotator.exchange.exports.thresholds import Limits
from annotator.progress_callbacks import StepCallback, ignore_steps
from annotator.store.database.arrays import remove_unfinished_files
from annotator.store.database.database import Database
from annotator.store.database.files_together import finish_renaming, replace_files_together
from annotator.worker.taking_home.portable_classifier import PortableClassifier, build_classifier

MAX_PROBABILITY_DIFFERENCE = 1e-3  # by which probabilities of the file may differ from torch's
ONNX_OPSET = 18
CLASSIFIER_SUFFIXES = (".onnx", ".safetensors")


def write_classifier(
    project: Path,
    target: Path,
    limits: Limits,
    *,
    overwrite: bool = False,
    on_step: StepCallback = ignore_steps,
) -> tuple[Description, list[Path]]:
    """Build the classifier of a project's current run, and write it with its model card.

    Args:
        target: An .onnx file, or a .safetensors file with a .json file next to it.
        limits: Expected errors that the thresholds allow.
        overwrite: Replace existing files.
        on_step: Called with (current step, done, of).

    Returns:
        The description, and the files: the classifier first, its card last.

    Raises:
        AnnotatorError: No run exists, the files cannot be written, or ONNX export is unavailable.
    """
    files = _build_file_paths(target)
    problems = limits.problems()
    if not target.parent.is_dir():
        problems.append(f"There is no folder {target.parent} to write to.")
    finish_renaming(target)  # of a killed process
    there = [] if overwrite else [path for path in files if path.exists()]
    problems += [f"{path} is there already: --overwrite replaces it." for path in there]
    if problems:
        raise combine_problems("No classifier was written:", problems)
    is_onnx = target.suffix.lower() == ".onnx"
    if is_onnx:
        _check_onnx_installed()
    made = build_classifier(Database(project), limits, on_step)
    on_step("Writing", 0, 0)
    texts = [format_model_card(made.description, target.name)]
    if not is_onnx:
        texts.insert(0, made.description.as_text())
    remove_unfinished_files(target.parent, f".{glob.escape(target.stem)}.*")  # left by killed processes
    with replace_files_together(target) as group:
        parts = [group.add_file(path) for path in files]
        (_write_onnx if is_onnx else _write_weights)(made, parts[0])
        for part, text in zip(parts[1:], texts, strict=True):
            part.write_text(text, encoding="utf-8")
    return made.description, files


class ClassifierModule(nn.Module):
    """A torch module from pixels (n, 3, S, S) uint8 to class probabilities (n, C)."""

    mean: Tensor
    scale: Tensor
    columns: Tensor
    slopes: Tensor
    shifts: Tensor

    def __init__(self, made: PortableClassifier):
        super().__init__()
        self.whole, self.model = made.backbone.whole, made.model
        for name, values in (("mean", made.backbone.mean), ("scale", made.backbone.std)):
            self.register_buffer(name, torch.tensor(values).view(1, 3, 1, 1) * 255)
        for name in ("columns", "slopes", "shifts"):
            self.register_buffer(name, getattr(made, name))
        self.eval()

    @override
    def forward(self, images: Tensor) -> Tensor:
        features, regions = self.whole((images.float() - self.mean) / self.scale, True)
        return torch.sigmoid(self.model(features, regions)[:, self.columns] * self.slopes + self.shifts)


def _write_onnx(made: PortableClassifier, path: Path) -> None:
    import onnx

    network, side = ClassifierModule(made), made.description.size
    example = torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    try:
        with _silence_exporter():
            program = torch.onnx.export(
                network, (example,), dynamo=True, input_names=[INPUT_NAME], output_names=[OUTPUT_NAME],
                dynamic_shapes={"images": {0: torch.export.Dim("images")}}, opset_version=ONNX_OPSET, verbose=False,
            )  # fmt: skip
        assert program is not None  # with dynamo
        proto = program.model_proto
        proto.metadata_props.append(onnx.StringStringEntryProto(key=METADATA_KEY, value=made.description.as_text()))
        content = proto.SerializeToString()
    except Exception as error:  # torch's exporter raises whatever it meets in a network
        raise AnnotatorError(
            f"{made.description.network} cannot be written as ONNX ({_first_line(error)}). A name that ends in "
            ".safetensors writes its weights for torch instead; networks of plug-ins also need their plug-in there."
        ) from error
    _check_same_probabilities(network, content, example)
    path.write_bytes(content)


def _check_same_probabilities(network: ClassifierModule, content: bytes, example: Tensor) -> None:
    """Raise AnnotatorError if the written ONNX file and torch give different probabilities for an example image."""
    import onnxruntime

    more = torch.cat([example, example.flip(3)[:1]])  # another number of images than it was traced with
    with torch.inference_mode():
        wanted = network(more).numpy()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    given = np.asarray(session.run([OUTPUT_NAME], {INPUT_NAME: more.numpy()})[0])
    apart = float(np.abs(given - wanted).max())
    if not apart <= MAX_PROBABILITY_DIFFERENCE:
        raise AnnotatorError(
            f"The ONNX file gives other probabilities than torch, by up to {apart:.4f}, so it was not written. "
            "Report it with the name of the network and the versions of torch and onnxruntime."
        )


def _write_weights(made: PortableClassifier, path: Path) -> None:
    from safetensors.torch import save_file

    own = {f"network.{name}": tensor for name, tensor in made.state.items()}
    own |= {f"model.{name}": tensor.contiguous() for name, tensor in made.model.state_dict().items()}
    own |= {name: getattr(made, name).contiguous() for name in ("columns", "slopes", "shifts")}
    save_file(own, path)


def _build_file_paths(target: Path) -> list[Path]:
    suffix = target.suffix.lower()
    if suffix not in CLASSIFIER_SUFFIXES:
        raise AnnotatorError(
            f"{target} must end in {' or '.join(CLASSIFIER_SUFFIXES)}: the ending says what is written."
        )
    beside = [] if suffix == ".onnx" else [target.with_suffix(".json")]
    return [target, *beside, target.with_name(f"{target.name}.md")]


def _check_onnx_installed() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise AnnotatorError(
            f"{error.name} is not installed, which ONNX files need. Install it with: {INSTALL_COMMAND}"
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300].rstrip(".")


@contextlib.contextmanager
def _silence_exporter() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
