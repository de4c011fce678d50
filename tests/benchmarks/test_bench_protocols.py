"""`bench methods` with the network, the precision, the recipe and the classes of the papers."""

from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
import torchvision
from PIL import Image
from torch import nn

from annotator.benchmark.datasets import load_dataset
from annotator.benchmark.methods import cole, finished_results, tune
from annotator.benchmark.methods.compared_images import ComparedImages
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.finetune import Network, make_network_recipe
from annotator.benchmark.methods.methods_comparison import build_methods_report, measure_methods
from annotator.benchmark.methods.task import Choice, make_task
from annotator.benchmark.methods.trainers import train_on_frozen
from annotator.errors import AnnotatorError
from spmll.methods import METHODS

pytestmark = [pytest.mark.training, pytest.mark.usefixtures("one_thread")]

SMALL = "efficientnet_lite0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twenty images of two colours, half of them with a frame."""
    images = tmp_path_factory.mktemp("set") / "images"
    images.mkdir()
    rows, chance = ["image,labels"], np.random.default_rng(0)
    for number in range(20):
        pixels = chance.integers(0, 60, (64, 64, 3), dtype=np.uint8)
        pixels[:, :, number % 2] += 150
        shows = ["green" if number % 2 else "red"]
        if number % 4 < 2:
            pixels[:8] = 255
            shows.append("frame")
        Image.fromarray(pixels).save(images / f"{number:02d}.png")
        rows.append(f"{number:02d}.png,{'|'.join(shows)}")
    truth = images.parent / "truth.csv"
    truth.write_text("\n".join(rows) + "\n")
    return images, truth


# -- the network


def test_finetuning_starts_from_torchvision_v1_weights_as_in_the_papers():
    for options in (Options(regime="finetune"), Options(protocol="cole")):
        assert options.network == "resnet50.tv_in1k"
    assert Options(regime="finetune", backbone=SMALL).network == SMALL
    of_timm = timm.models.get_pretrained_cfg("resnet50.tv_in1k")
    file = torchvision.models.ResNet50_Weights.IMAGENET1K_V1.url.rpartition("/")[2]
    assert file in (of_timm.url or "")
    assert (of_timm.interpolation, of_timm.mean, of_timm.std) == (
        "bilinear", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225),
    )  # fmt: skip


# -- the precision


def test_each_method_trains_in_the_precision_of_its_paper():
    def precision(name, device, **chosen):
        return make_network_recipe(name, Choice(), Network(SMALL, 64, device, **chosen)).precision

    trainable = [name for name in METHODS if not Options(regime="finetune").find_obstacle(name)]
    on_gpu = {name: precision(name, "cuda") for name in trainable}
    assert on_gpu.pop("lagc") == "fp16"
    assert set(on_gpu.values()) == {"fp32"}
    assert precision("lagc", "cpu") == "fp32"
    assert precision("lagc", "cuda", precision="bf16") == precision("an", "cpu", precision="bf16") == "bf16"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (Options(regime="finetune", precision="half"), "no precision is called 'half'"),
        (Options(regime="finetune", precision="fp16", device="cpu"), "fp16 needs a GPU"),
        (Options(precision="bf16"), "it takes --regime finetune"),
        (Options(protocol="kole"), "no protocol is called 'kole'"),
        (Options(("an",), "finetune", protocol="cole"), "it takes --regime linear"),
        (Options(("an",), trials=2, protocol="cole"), "leave out --trials and --batch"),
        (Options(("an",), batch=8, protocol="cole"), "leave out --trials and --batch"),
        (Options(("an",), no_split=True, protocol="cole"), "--no-split leaves none"),
        (Options(("an",), validate="none", protocol="cole"), "leave out --validate none"),
        (Options(("lagc",), protocol="cole"), "lagc is no linear classifier"),
        (Options(("role+linear_init",), protocol="cole"), "role\\+linear_init ends with the whole network"),
    ],
)
def test_incompatible_protocol_options_are_refused(options, told):
    with pytest.raises(AnnotatorError, match=told):
        options.check_and_resolve()


@pytest.mark.slow
def test_report_names_the_backbone_and_precision(folder, tmp_path):
    chosen = Options(
        ("an",), "finetune", seeds=1, backbone=SMALL, epochs=1, size=64, device="cpu", work=tmp_path, precision="bf16"
    )
    result = measure_methods(*folder, options=chosen)
    assert f"Regime finetune, {SMALL}, bf16, 1 seeds" in build_methods_report(result).description[1]
    other = measure_methods(*folder, options=replace(chosen, precision=None))
    assert f"Regime finetune, {SMALL}, precision of each paper, 1 seeds" in build_methods_report(other).description[1]


# -- the linear protocol of Cole et al.


def test_hyperparameter_grid_matches_the_paper():
    tried = [cole.make_linear_recipe(choice) for choice in cole.make_grid()]
    assert [(settings.lr, settings.batch) for settings in tried] == [
        (pytest.approx(rate), batch) for rate in (1e-2, 1e-3, 1e-4, 1e-5) for batch in (8, 16)
    ]
    assert {(one.epochs, one.optimiser, one.weight_decay, one.drop_last) for one in tried} == {(25, "adam", 0.0, True)}


def test_method_constants_changed_by_the_user_apply_to_every_tuning_trial():
    changed = Options(("an_ls",), trials=3, changed=("an_ls.negative=0.3",))
    for options in (changed, replace(changed, trials=1, protocol="cole")):
        choices = tune.list_candidates("an_ls", options)
        assert len(choices) > 2 and {choice.parameters["negative"] for choice in choices} == {0.3}


def test_linear_classifier_training_matches_a_plain_pytorch_loop(folder, tmp_path):
    """One batch of all images makes their order irrelevant, so that a loop of PyTorch can be held against it."""
    dataset = load_dataset("folder", *folder)
    fixed = cole.FixedFeatures(dataset, Options(backbone=SMALL, size=64, device="cpu", work=tmp_path))
    task = make_task(dataset, 1.0, 0)
    trained = fixed.train("an", Choice(0.1, batch=len(task.labeled_places)), task, 3, tmp_path / "training")
    torch.manual_seed(3)
    classifier = nn.Linear(fixed.features.shape[1], task.truth.shape[1])
    optimiser = torch.optim.Adam(classifier.parameters(), lr=1e-3)
    features = torch.from_numpy(fixed.features)
    marked = torch.from_numpy(task.get_labels(False) == 1)
    maps = []
    for epoch in range(1, 26):
        p = torch.sigmoid(classifier(features[task.train[task.labeled_places]]))
        loss = -torch.where(marked, torch.log(p + 1e-5), torch.log(1 - p + 1e-5)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            maps.append(task.val_map(torch.sigmoid(classifier(features[task.val])).numpy()))
            if epoch == trained.epoch:
                expected = torch.sigmoid(classifier(features[task.test])).numpy()
    assert trained.val_map == pytest.approx(max(maps)) and trained.epoch == 1 + int(np.argmax(maps))
    np.testing.assert_allclose(trained.probabilities(task.test), expected, atol=1e-5)


def test_best_of_eight_settings_is_chosen_on_validation_images(folder, tmp_path, capsys):
    chosen = Options(("an", "role"), seeds=2, epochs=2, backbone=SMALL, size=64, work=tmp_path, protocol="cole")
    result = measure_methods(*folder, options=chosen)
    assert capsys.readouterr().err.count("trial:") == 16
    for row in result["rows"]:
        best = cole.make_grid()[int(np.argmax(row["trial_scores"]))]
        assert len(row["trial_scores"]) == 8 and (row["chosen"]["lr"], row["chosen"]["batch"]) == (best.lr, best.batch)
    assert result["setting"]["searched"] == {"lr": [1e-2, 1e-3, 1e-4, 1e-5], "batches": [8, 16]}
    assert (
        "protocol of Cole et al. at 64 pixels, the best of 8 settings on validation mAP"
        in build_methods_report(result).description[1]
    )
    assert measure_methods(*folder, options=chosen)["rows"] == result["rows"]
    assert capsys.readouterr().err.count("(done before)") == 20
    assert "annotator.benchmark.methods.cole" in finished_results.find_modules("an", "linear", "cole")


# -- classes that nobody marked


@pytest.mark.parametrize("of_papers", [True, False])
def test_class_without_labels_is_scored_only_on_published_datasets(folder, tmp_path, of_papers):
    dataset = load_dataset("folder", *folder)
    options = Options(backbone=SMALL, device="cpu", work=tmp_path)
    task = make_task(dataset, 1.0, 0)
    labels = task.labels.copy()
    labels[:, 0] = 0
    task = replace(task, labels=labels, empty_as_zero=of_papers)
    trained = train_on_frozen("an", Choice(), task, ComparedImages(dataset, options), options, 0, tmp_path / "a")
    found = trained.probabilities(task.test)
    assert np.isfinite(found[:, 1:]).all()
    if of_papers:
        assert (found[:, 0] < 0.5).all()  # it is assumed to be absent everywhere
    else:
        assert np.isnan(found[:, 0]).all()
