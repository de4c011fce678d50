"""One adapting on this machine: estimate, inputs, epochs, and publishing the network at the end."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional as F

from annotator.errors import AnnotatorError
from annotator.store.database import new_folders
from annotator.store.database.arrays import save_array
from annotator.store.database.database import Database
from annotator.store.database.new_folders import new_folder
from annotator.store.images.band_setting import shown_bands
from annotator.store.networks import adapted
from annotator.store.networks.adapted import Adapted
from annotator.store.networks.judged import figures
from annotator.worker.adapting.card import card
from annotator.worker.adapting.inputs import examples_of, files_of, make_inputs, within_room
from annotator.worker.adapting.judge import judge
from annotator.worker.adapting.plan import Plan, check
from annotator.worker.adapting.work import Estimate, Paused, Work, low_priority
from annotator.worker.features.backbone import network_of
from models.backbones.local_dir import licence_of, save_network
from models.backbones.networks import Backbone
from models.finetune.adapt import WEAK_VIEWS, adapt, features_of, settings_of
from models.finetune.last_stages import put_back, split
from models.methods import make_method
from models.statistics.paired import Comparison

if TYPE_CHECKING:
    from models.finetune.fit_network import NetworkTraining

CHECKPOINT = "checkpoint.safetensors"
PROBED = 16  # images whose inputs, and features, are timed
SEED = 0


class Training:
    """The training of one plan.

    Attributes:
        epochs_done: The number of epochs so far.
    """

    def __init__(self, db: Database, plan: Plan, folder: Path, work: Work):
        """Load the network. Raises AnnotatorError when its weights cannot be had, or it cannot be adapted."""
        self.db, self.plan, self.folder, self.work = db, plan, folder, work
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        if self.device == "cpu":
            low_priority()
        self.source = network_of(db, plan.parent)
        try:
            self.backbone = Backbone(plan.parent, self.source, self.device)
            self.inputs, self.last_stages, self.what = split(self.backbone, self.source)
            self.method = make_method(plan.method, **plan.parameters)
        except (ValueError, TypeError) as error:
            raise AnnotatorError(str(error)) from error
        self.files = files_of(folder, self.inputs, shown_bands(db))
        if not plan.is_settled:
            self.plan = within_room(plan, self.files.bytes_each)
        self.epochs_done = 0
        self.features: list[np.ndarray] = []  # of the adapted network, where they were computed elsewhere
        self.seconds_a_step = 0.0

    @property
    def checkpoint(self) -> Path:
        """Return the path of the checkpoint."""
        return self.folder / CHECKPOINT

    def estimate(self, all_images: int) -> Estimate:
        """Estimate how long the training takes, by timing a few images and one step.

        Args:
            all_images: The number of images in the project, for the time to compute their features.
        """
        self.work.say("timing one step")
        settings, plan = settings_of(self.plan.epochs), self.plan
        size = self.backbone.input_size
        pixels = torch.zeros(PROBED, 3, size, size, dtype=torch.uint8)
        workers = max(1, torch.get_num_threads())
        inputs_each = _timed(lambda: self.inputs(pixels)) / PROBED
        features_each = _timed(lambda: self.backbone.features_and_regions(pixels)) / PROBED
        batch = min(settings.batch, len(plan.fitted))
        self.seconds_a_step = self._step_seconds(batch)
        steps = -(-len(plan.fitted) // batch) * plan.epochs
        views = WEAK_VIEWS * len(plan.fitted) + len(plan.judging)
        ahead = 2 * len(plan.fitted) * self.seconds_a_step / batch / 3  # start and judging: forward passes only
        return Estimate(
            views * inputs_each,
            steps * self.seconds_a_step + ahead,
            all_images * features_each,
            len(plan.image_ids),
            plan.epochs,
            "a GPU" if self.device == "cuda" else f"this machine's {'CPU' if workers == 1 else f'{workers} CPU cores'}",
        )

    def settle(self) -> None:
        """Write the plan, so that the same command goes on with it."""
        if not self.plan.is_settled:
            self.plan.write(self.folder)

    def make_inputs(self) -> Plan:
        """Write the plan and make the inputs that are missing. Raises Paused, DiskFull, NothingToLearn."""
        self.settle()
        doing = "preparing images"
        self.work.say(doing, 0, len(self.plan.image_ids))
        settled = make_inputs(
            self.db, self.plan, self.files, lambda done, of: self.work.say(doing, done, of), self.work.check
        )
        if not self.plan.is_settled:
            settled.write(self.folder)
        self.plan = settled
        return settled

    def train(self) -> None:
        """Train all epochs that remain. Raises Paused, AnnotatorError."""
        plan, rows = self.plan, self.plan.fitted
        self.work.say("starting from the linear head")
        try:
            training = adapt(
                self.last_stages,
                examples_of(plan, rows, self.files, self.device),
                plan.labels[rows],
                plan.mask[rows],
                plan.unbiased[rows],
                self.method,
                settings_of(plan.epochs),
                seed=SEED,
                checkpoint=self.checkpoint,
                should_stop=self.work.check,
            )
            self.follow(training)
        except ValueError as error:
            raise AnnotatorError(f"{plan.parent} could not be adapted: {error}") from error

    def follow(self, training: "NetworkTraining") -> None:
        """Run the epochs of a training and report progress. Raises Paused where it was stopped before the last one."""
        self.epochs_done = len(training.history)
        self._say_epoch()
        for epoch in training:
            self.epochs_done = epoch.number
            self._say_epoch()
        if self.epochs_done < self.plan.epochs:
            raise Paused
        weights = training.weights()
        self.weight, self.bias = weights["classifier.weight"], weights["classifier.bias"]

    def take_over(
        self, weights: dict[str, torch.Tensor], fitted: np.ndarray, judging: np.ndarray, unread: list[int]
    ) -> None:
        """Take over the result of a training that ran elsewhere. Raises NothingToLearn.

        Args:
            weights: As NetworkTraining returns them.
            fitted: (n, D) features of the images that were trained on.
            judging: (m, D) features of the held-out images.
            unread: Rows of the plan that could not be read there; they are removed from the plan.
        """
        if unread:
            self.plan = self.plan.with_rows(np.setdiff1d(np.arange(len(self.plan.image_ids)), unread))
            check(self.plan)
        prefix = "body."
        ours = {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
        self.last_stages.load_state_dict(ours)
        self.weight, self.bias = weights["classifier.weight"], weights["classifier.bias"]
        self.features, self.epochs_done = [fitted, judging], self.plan.epochs

    @property
    def digest(self) -> str:
        """Return a short digest of the plan, which names its run on a cluster."""
        digest = hashlib.sha256(repr((self.plan.parent, self.plan.epochs, self.plan.newest_decision)).encode())
        for array in (self.plan.image_ids, self.plan.labels, self.plan.mask):
            digest.update(array.tobytes())
        return digest.hexdigest()[:12]

    def _say_epoch(self) -> None:
        plan = self.plan
        steps = (plan.epochs - self.epochs_done) * -(-len(plan.fitted) // settings_of().batch)
        self.work.ends_in(steps * self.seconds_a_step)
        self.work.say("training", self.epochs_done, plan.epochs, at_once=True)

    def keep(self, seconds: float) -> Adapted:
        """Judge the network, and publish it as a folder of the project. Raises AnnotatorError, DiskFull."""
        plan = self.plan
        features = self.features or [
            features_of(
                self.last_stages, examples_of(plan, rows, self.files, self.device), self.work.check, as_backbone=True
            )
            for rows in (plan.fitted, plan.judging)
        ]
        try:
            compared = judge(self.db, plan, *features)
        except ValueError as error:
            raise AnnotatorError(f"The adapted network could not be judged: {error}") from error
        facts = self._adapted(compared, seconds)
        target = self.db.paths.adapted(plan.name)
        new_folders.sweep(target.parent, target.name)
        try:
            with new_folder(target) as part:
                save_network(
                    part, self.source, put_back(self.source, self.last_stages), self.weight, self.bias, plan.class_names
                )
                save_array(part / adapted.SEEN, plan.image_ids[plan.fitted])
                (part / "README.md").write_text(card(facts, self.source, plan.class_names), encoding="utf-8")
                adapted.write_facts(part, facts)
        except ValueError as error:
            raise AnnotatorError(f"The adapted network could not be kept: {error}") from error
        return facts

    def _adapted(self, compared: Comparison, seconds: float) -> Adapted:
        plan = self.plan
        return Adapted(
            name=plan.name,
            parent=plan.parent,
            what=self.what,
            licence=licence_of(self.source),
            created_at=time.time(),
            epochs=plan.epochs,
            seconds=round(seconds, 1),
            images=len(plan.fitted),
            answers=int(((plan.labels[plan.fitted] != 0) & plan.mask[plan.fitted]).sum()),
            newest_decision=plan.newest_decision,
            held_out_images=compared.images,
            held_out_answers=compared.answers,
            judged_classes=compared.classes,
            classes=len(plan.class_ids),
            known_answers=plan.known_answers,
            **figures(compared),
        )

    def _step_seconds(self, batch: int) -> float:
        """Return the seconds of one step on random inputs; the weights are restored."""
        before = {name: tensor.clone() for name, tensor in self.last_stages.state_dict().items()}
        network = self.last_stages.to(self.device).train()
        inputs = torch.randn(batch, *self.inputs.shape, generator=torch.Generator().manual_seed(0)).to(self.device)
        optimiser = torch.optim.AdamW(network.parameters(), lr=0.0)

        def step() -> None:
            loss = F.softplus(network(inputs)).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            float(loss.detach())

        seconds = _timed(step)
        self.last_stages.load_state_dict(before)
        return seconds


def _timed(work: Callable[[], object]) -> float:
    work()  # memory is taken, and kernels are chosen
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
