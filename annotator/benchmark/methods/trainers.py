"""Training of one method in a comparison, by a project's trainer or end to end."""

from collections.abc import Callable, Sequence
from pathlib import Path

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.methods import data
from annotator.benchmark.methods.cole import FixedFeatures
from annotator.benchmark.methods.compared_images import ComparedImages
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.epochs import Best, best_file, follow_training, state_file
from annotator.benchmark.methods.finetune import Network, build_network_trainer
from annotator.benchmark.methods.task import Choice, Task, Trained
from spmll.finetune.resume_point import ResumePoint
from spmll.linear.training import TrainingSettings
from spmll.methods import METHODS, make_method
from spmll.methods.training_recipes import BENCHMARK_SETS
from spmll.trainers import get_trainer_class
from spmll.trainers.base import TrainingInputs

Train = Callable[[str, Choice, Task, int, Path], Trained]  # method, how, on what, seed, what its state is called


def make_training_function(dataset: DataSet, options: Options) -> Train:
    """Return the function that trains one method under these options.

    Raises ValueError for an unknown backbone, AnnotatorError for an unreadable image.
    """
    if options.regime == "finetune":
        paths = data.join_parts(dataset).paths
        network = Network.build(options, dataset.name if dataset.name in BENCHMARK_SETS else "voc")
        return lambda name, choice, task, seed, state: train_network(name, choice, task, paths, network, seed, state)
    if options.protocol == "cole":
        return FixedFeatures(dataset, options).train
    images = ComparedImages(dataset, options)
    return lambda name, choice, task, seed, state: train_on_frozen(name, choice, task, images, options, seed, state)


def train_on_frozen(
    name: str, choice: Choice, task: Task, images: TrainingInputs, options: Options, seed: int, state: Path
) -> Trained:
    """Train a method on frozen features and keep the best validation epoch.

    On published sets, classes without a label are trained too.

    Args:
        options: `epochs` is scaled by the choice, `batch` is a fallback.
        state: Path prefix of the files to resume from.

    Raises:
        ValueError: For invalid parameters.
        AnnotatorError: For an unreadable image.
    """
    method, trainer = make_method(name, **choice.parameters), get_trainer_class(METHODS[name].reads)
    best = Best(best_file(state) if trainer.has_long_epochs else None)
    training = trainer(
        method,
        images,
        task.make_training_labels(method.full_labels, method.known_absences),
        settings=TrainingSettings(
            max(1, round(choice.epochs * (options.epochs or method.epochs))),
            choice.lr * method.lr,
            choice.batch or options.batch or trainer.comparison_batch,
            every_class=task.empty_as_zero,
        ),
        seed=seed,
        resume=ResumePoint(state_file(state), lambda: best.best_epoch),
    )
    return follow_training(name, training, best, task)


def train_network(
    name: str, choice: Choice, task: Task, paths: Sequence[Path], network: Network, seed: int, state: Path
) -> Trained:
    """Train the whole network with the paper's settings, keeping the best epoch.

    Raises:
        ValueError: For an invalid parameter, unreadable image or non-finite loss.
    """
    best = Best(best_file(state))
    resume = ResumePoint(state_file(state), lambda: best.best_epoch)
    return follow_training(name, build_network_trainer(name, choice, task, paths, network, seed, resume), best, task)
