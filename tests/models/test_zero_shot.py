"""Texts of classes compared with images and patches, by vectors whose right class is known."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from spmll.statistics.metrics import mean_average_precision
from spmll.zero_shot.first_guess import CLASSES_PER_CHUNK, guess_probabilities, standardize
from spmll.zero_shot.patch_scores import average_class_vectors, score_best_patch
from spmll.zero_shot.prompts import NAME_SLOT, PROMPT_TEMPLATES, build_prompts, list_names

PATCHES, SIZE = 49, 32


def made(images: int, classes: int, share: float = 0.2):
    """Unit vectors: patches (N, P, E), each image with one patch of each class it shows; classes, nothing, truth."""
    random = np.random.default_rng(0)
    axes = torch.from_numpy(np.linalg.qr(random.normal(size=(SIZE, SIZE)))[0]).float()
    truth = random.random((images, classes)) < share
    patches = axes[classes] + 0.1 * torch.from_numpy(random.normal(size=(images, PATCHES, SIZE))).float()
    for image, class_ in np.argwhere(truth).tolist():
        patches[image, random.integers(PATCHES)] = axes[class_]
    return normalize(patches, dim=2), axes[:classes], axes[classes], truth


def test_prompts_combine_every_class_name_with_every_template():
    names = list_names("heron", ("egret", "heron"), "grey, with a long neck.")
    assert names == ("heron", "egret", "heron, grey, with a long neck")
    texts = build_prompts(names)
    assert len(texts) == len(names) * len(PROMPT_TEMPLATES) and "a photo of a egret." in texts
    assert all(NAME_SLOT not in text for text in texts)
    assert build_prompts(["{} {}"], ["a {}"]) == ["a {} {}"] and list_names("fox") == ("fox",)


def test_class_vector_is_the_normalized_mean_of_its_text_vectors():
    of_texts = normalize(torch.tensor([[1.0, 0], [0, 1], [0, 1]]), dim=1)
    assert torch.allclose(average_class_vectors(of_texts, [2, 1]), torch.tensor([[0.5**0.5, 0.5**0.5], [0, 1]]))


def test_best_patch_score_finds_small_objects_that_the_whole_image_misses():
    patches, classes, nothing, truth = made(60, 6)
    noise = 0.03 * torch.from_numpy(np.random.default_rng(1).normal(size=(60, SIZE))).float()
    of_images = normalize(patches.mean(1) + noise, dim=1) @ classes.T
    of_patches = score_best_patch(patches, classes, nothing, 50.0).numpy()
    assert mean_average_precision(of_patches, truth) > 0.99
    assert mean_average_precision(of_images.numpy(), truth) < 0.8
    assert mean_average_precision(guess_probabilities(of_images.numpy(), of_patches), truth) > 0.95


def test_best_patch_score_of_one_class_separates_present_from_absent_images():
    patches, classes, nothing, truth = made(60, 1)
    scores = score_best_patch(patches, classes, nothing, 50.0).numpy()
    assert scores[truth].min() > 0 > scores[~truth].max()


def test_text_based_probabilities_ignore_the_offset_and_scale_of_class_scores():
    random = np.random.default_rng(0)
    scores = random.normal(size=(500, 1)) * [1, 0.001, 1] + [0, 0.3, -40]
    guess = guess_probabilities(scores)
    assert np.allclose(guess[:, 0], guess[:, 1], atol=1e-4) and np.allclose(guess[:, 0], guess[:, 2], atol=1e-4)
    assert ((guess > 0) & (guess < 1)).all() and (np.argsort(guess[:, 1]) == np.argsort(scores[:, 1])).all()


@pytest.mark.filterwarnings("error")
def test_text_based_probabilities_ignore_unknown_patch_scores():
    assert not standardize(np.full((4, 2), 3.0)).any()
    assert np.isnan(standardize(np.array([[np.nan], [1.0], [2.0]]))).sum() == 1
    of_images = np.random.default_rng(0).normal(size=(50, CLASSES_PER_CHUNK + 3))
    unknown = np.full(of_images.shape, np.nan)
    assert np.allclose(guess_probabilities(of_images), guess_probabilities(of_images, unknown), atol=1e-6)
    # beyond one block, too
    assert np.allclose(guess_probabilities(of_images)[:, -1:], guess_probabilities(of_images[:, ::-1])[:, :1])
    assert (
        guess_probabilities(of_images[:1]).shape == (1, CLASSES_PER_CHUNK + 3)
        and guess_probabilities(of_images[:0]).shape[0] == 0
    )
