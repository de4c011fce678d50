"""An adaptation on this machine, from estimate to publication."""

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
from annotator.store.database.new_folders import replace_folder_atomically
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.networks import adapted_networks
from annotator.store.networks.adapted_networks import AdaptedNetwork
from annotator.store.networks.network_judgement import to_judgement_fields
from annotator.system_resources import lower_priority
from annotator.worker.adapting.adaptation_plan import AdaptationPlan, check_plan
from annotator.worker.adapting.adaptation_progress import AdaptationEstimate, AdaptationProgress, Paused
from annotator.worker.adapting.judge import judge_network
from annotator.worker.adapting.network_card import format_network_card
from annotator.worker.adapting.stage_inputs import build_examples, limit_to_disk_space, make_inputs, open_input_files
from annotator.worker.features.backbone import load_project_network
from spmll.backbones.frozen_backbone import Backbone
from spmll.backbones.local_dir import read_timm_license, save_network
from spmll.finetune.adapt import (
    WEAK_VIEWS,
    AdaptationLabels,
    adapt_last_stages,
    compute_stage_features,
    make_adaptation_recipe,
)
from spmll.finetune.last_stages import merge_last_stages, split_network
from spmll.methods import make_method
from spmll.statistics.paired_bootstrap import Comparison

if TYPE_CHECKING:
    from spmll.finetune.fit_network import NetworkTraining

CHECKPOINT_FILE = "checkpoint.safetensors"
TIMED_IMAGES = 16  # images whose inputs, and features, are timed
SEED = 0


class Training:
    """One run of an adaptation plan on this machine."""

    def __init__(self, db: Database, plan: AdaptationPlan, folder: Path, work: AdaptationProgress):
        """Load the backbone. Raises AnnotatorError if it cannot be adapted."""
        self.db, self.plan, self.folder, self.work = db, plan, folder, work
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        if self.device == "cpu":
            lower_priority(15)
        self.source = load_project_network(db, plan.parent)
        try:
            self.backbone = Backbone(plan.parent, self.source, self.device)
            self.inputs, self.last_stages, self.trained_part = split_network(self.backbone, self.source)
            self.method = make_method(plan.method, **plan.parameters)
        except (ValueError, TypeError) as error:
            raise AnnotatorError(str(error)) from error
        self.files = open_input_files(folder, self.inputs, get_shown_bands(db))
        if not plan.is_settled:
            self.plan = limit_to_disk_space(plan, self.files.bytes_each)
        self.epochs_done = 0
        self.features: list[np.ndarray] = []  # of the adapted network, where they were computed elsewhere
        self.seconds_per_step = 0.0

    @property
    def checkpoint_path(self) -> Path:
        return self.folder / CHECKPOINT_FILE

    def estimate(self, all_images: int) -> AdaptationEstimate:
        """Estimate the duration by timing one step (`all_images`: number of images in the project)."""
        self.work.report("timing one step")
        settings, plan = make_adaptation_recipe(self.plan.epochs), self.plan
        size = self.backbone.input_size
        pixels = torch.zeros(TIMED_IMAGES, 3, size, size, dtype=torch.uint8)
        workers = max(1, torch.get_num_threads())
        inputs_each = _measure_seconds(lambda: self.inputs(pixels)) / TIMED_IMAGES
        features_each = _measure_seconds(lambda: self.backbone.features_and_regions(pixels)) / TIMED_IMAGES
        batch = min(settings.batch, len(plan.fitted_rows))
        self.seconds_per_step = self._time_step(batch)
        steps = -(-len(plan.fitted_rows) // batch) * plan.epochs
        views = WEAK_VIEWS * len(plan.fitted_rows) + len(plan.held_out_rows)
        ahead = 2 * len(plan.fitted_rows) * self.seconds_per_step / batch / 3  # start and judging: forward passes only
        return AdaptationEstimate(
            views * inputs_each,
            steps * self.seconds_per_step + ahead,
            all_images * features_each,
            len(plan.image_ids),
            plan.epochs,
            "a GPU" if self.device == "cuda" else f"this machine's {'CPU' if workers == 1 else f'{workers} CPU cores'}",
        )

    def write_plan(self) -> None:
        """Write the plan, which makes the training resumable."""
        if not self.plan.is_settled:
            self.plan.write(self.folder)

    def make_inputs(self) -> AdaptationPlan:
        """Write the plan and the missing inputs of the trained stages. Raises Paused, DiskFull or NothingToLearn."""
        self.write_plan()
        doing = "preparing images"
        self.work.report(doing, 0, len(self.plan.image_ids))
        settled = make_inputs(
            self.db,
            self.plan,
            self.files,
            lambda done, of: self.work.report(doing, done, of),
            self.work.raise_if_paused,
        )
        if not self.plan.is_settled:
            settled.write(self.folder)
        self.plan = settled
        return settled

    def train(self) -> None:
        """Train the remaining epochs. Raises Paused, AnnotatorError."""
        plan, rows = self.plan, self.plan.fitted_rows
        self.work.report("starting from the linear head")
        try:
            training = adapt_last_stages(
                self.last_stages,
                build_examples(plan, rows, self.files, self.device),
                AdaptationLabels(plan.labels[rows], plan.mask[rows], plan.unbiased[rows]),
                self.method,
                make_adaptation_recipe(plan.epochs),
                seed=SEED,
                checkpoint=self.checkpoint_path,
                should_stop=self.work.raise_if_paused,
            )
            self.run_epochs(training)
        except ValueError as error:
            raise AnnotatorError(f"{plan.parent} could not be adapted: {error}") from error

    def run_epochs(self, training: "NetworkTraining") -> None:
        """Run the remaining epochs of a training and report progress. Raises Paused."""
        self.epochs_done = len(training.history)
        self._report_epoch()
        for epoch in training:
            self.epochs_done = epoch.number
            self._report_epoch()
        if self.epochs_done < self.plan.epochs:
            raise Paused
        weights = training.copy_weights()
        self.weight, self.bias = weights["classifier.weight"], weights["classifier.bias"]

    def adopt_result(
        self,
        weights: dict[str, torch.Tensor],
        fitted_features: np.ndarray,
        held_out_features: np.ndarray,
        unreadable_rows: list[int],
    ) -> None:
        """Load the result of a cluster training. Raises NothingToLearn.

        Args:
            fitted_features: (n, D) embeddings of training images.
            held_out_features: (m, D).
            unreadable_rows: Rows to remove from the plan.
        """
        if unreadable_rows:
            self.plan = self.plan.select_rows(np.setdiff1d(np.arange(len(self.plan.image_ids)), unreadable_rows))
            check_plan(self.plan)
        prefix = "body."
        ours = {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
        self.last_stages.load_state_dict(ours)
        self.weight, self.bias = weights["classifier.weight"], weights["classifier.bias"]
        self.features, self.epochs_done = [fitted_features, held_out_features], self.plan.epochs

    @property
    def digest(self) -> str:
        """Return the plan's short digest, which names its cluster run."""
        digest = hashlib.sha256(repr((self.plan.parent, self.plan.epochs, self.plan.newest_decision)).encode())
        for array in (self.plan.image_ids, self.plan.labels, self.plan.mask):
            digest.update(array.tobytes())
        return digest.hexdigest()[:12]

    def _report_epoch(self) -> None:
        plan = self.plan
        steps = (plan.epochs - self.epochs_done) * -(-len(plan.fitted_rows) // make_adaptation_recipe().batch)
        self.work.set_remaining_seconds(steps * self.seconds_per_step)
        self.work.report("training", self.epochs_done, plan.epochs, immediately=True)

    def judge_and_publish(self, seconds: float) -> AdaptedNetwork:
        """Judge the adapted backbone against its parent, and publish it. Raises AnnotatorError or DiskFull."""
        plan = self.plan
        features = self.features or [
            compute_stage_features(
                self.last_stages,
                build_examples(plan, rows, self.files, self.device),
                self.work.raise_if_paused,
                as_backbone=True,
            )
            for rows in (plan.fitted_rows, plan.held_out_rows)
        ]
        try:
            compared = judge_network(self.db, plan, *features)
        except ValueError as error:
            raise AnnotatorError(f"The adapted network could not be judged: {error}") from error
        facts = self._build_adapted_network(compared, seconds)
        target = self.db.paths.adapted_network(plan.name)
        new_folders.remove_unfinished_folders(target.parent, target.name)
        try:
            with replace_folder_atomically(target) as part:
                save_network(
                    part,
                    self.source,
                    merge_last_stages(self.source, self.last_stages),
                    self.weight,
                    self.bias,
                    plan.class_names,
                )
                save_array(part / adapted_networks.FITTED_IMAGES_FILE, plan.image_ids[plan.fitted_rows])
                (part / "README.md").write_text(
                    format_network_card(facts, self.source, plan.class_names), encoding="utf-8"
                )
                adapted_networks.write_facts(part, facts)
        except ValueError as error:
            raise AnnotatorError(f"The adapted network could not be kept: {error}") from error
        return facts

    def _build_adapted_network(self, compared: Comparison, seconds: float) -> AdaptedNetwork:
        plan = self.plan
        return AdaptedNetwork(
            name=plan.name,
            parent=plan.parent,
            what=self.trained_part,
            licence=read_timm_license(self.source),
            created_at=time.time(),
            epochs=plan.epochs,
            seconds=round(seconds, 1),
            images=len(plan.fitted_rows),
            answers=int(((plan.labels[plan.fitted_rows] != 0) & plan.mask[plan.fitted_rows]).sum()),
            newest_decision=plan.newest_decision,
            held_out_images=compared.images,
            held_out_answers=compared.answers,
            judged_classes=compared.classes,
            classes=len(plan.class_ids),
            known_answers=plan.known_answers,
            **to_judgement_fields(compared),
        )

    def _time_step(self, batch: int) -> float:
        """Return the seconds of one training step with this batch size, restoring the weights."""
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

        seconds = _measure_seconds(step)
        self.last_stages.load_state_dict(before)
        return seconds


def _measure_seconds(work: Callable[[], object]) -> float:
    work()  # memory is taken, and kernels are chosen
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
