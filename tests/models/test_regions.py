"""The regions of images: what the codes keep of the regions, and what they may lose."""

import numpy as np
import pytest
import torch

from spmll.ensemble.basis import MAX_AXES, signed_sqrt
from spmll.ensemble.regions import IMAGES_PER_CHUNK, RegionCodes, encode_regions, learn_region_basis

ROUNDING = 0.025  # a coordinate is rounded to 8 / 127 standard deviations


def seen(images, dimensions, rank=None, seed=0):
    """Pooled features (N, D) and nine regions (N, 9, D), whose roots lie in `rank` directions (None: in all)."""
    rng = np.random.default_rng(seed)
    rank = rank or dimensions
    roots = rng.normal(size=(images, 9, rank)) @ rng.normal(size=(rank, dimensions)) / rank**0.5
    regions = np.sign(roots) * roots**2
    return regions.mean(1).astype(np.float32), regions.astype(np.float32)


def rebuilt(region_codes):
    basis = region_codes.basis
    return basis.centre + (region_codes.codes.float() * basis.scales) @ basis.axes.T


@pytest.mark.parametrize(
    ("images", "dimensions", "rank"),
    [(40, 24, None), (60, 300, 40), (1, 300, None), (3, 300, None)],
    ids=["fewer dimensions than directions", "few directions hold all", "one image", "fewer regions than directions"],
)
def test_region_codes_reconstruct_the_regions_when_256_directions_suffice(images, dimensions, rank):
    features, regions = seen(images, dimensions, rank)
    region_codes = encode_regions(learn_region_basis(features, regions), regions)
    kept = min(dimensions, MAX_AXES)
    assert region_codes.codes.shape == (images, 9, kept) and region_codes.codes.dtype == torch.int8
    assert torch.allclose(region_codes.basis.axes.T @ region_codes.basis.axes, torch.eye(kept), atol=1e-5)
    there = signed_sqrt(torch.from_numpy(regions)) - region_codes.basis.centre
    assert (rebuilt(region_codes) - region_codes.basis.centre - there).norm() < ROUNDING * there.norm()


@pytest.mark.parametrize("images", [1, 3, 12])
def test_region_basis_is_orthonormal_for_few_images_with_sparse_channels(images):
    rng = np.random.default_rng(0)
    regions = np.maximum(rng.normal(size=(images, 9, 640)) - 1.5, 0) * (rng.random(640) < 0.5)
    basis = learn_region_basis(regions.mean(1), regions)
    assert torch.allclose(basis.axes.T @ basis.axes, torch.eye(MAX_AXES), atol=1e-5)
    there = signed_sqrt(torch.from_numpy(regions)).float() - basis.centre
    assert (rebuilt(encode_regions(basis, regions)) - basis.centre - there).norm() < ROUNDING * there.norm()


def test_region_basis_drops_the_directions_of_least_variance():
    features, regions = seen(60, 300)
    basis = learn_region_basis(features, regions)
    centred = (signed_sqrt(torch.from_numpy(regions)) - basis.centre).flatten(0, 1).double()
    values = torch.linalg.eigvalsh(centred.T @ centred).flip(0)
    along = (centred @ basis.axes.double()).square().sum(0)
    assert torch.allclose(along, values[:MAX_AXES], rtol=1e-3), "the largest first"
    lost = (centred - centred @ basis.axes.double() @ basis.axes.T.double()).square().sum()
    assert float(lost) == pytest.approx(float(values[MAX_AXES:].sum()), rel=1e-3)


def test_stored_region_lengths_are_exact_and_not_those_of_the_rounded_codes():
    features, regions = seen(60, 600)
    region_codes = encode_regions(learn_region_basis(features, regions), regions)
    exact = (signed_sqrt(torch.from_numpy(regions)) - region_codes.basis.centre).norm(dim=-1, keepdim=True)
    assert region_codes.lengths.dtype == torch.float32
    assert torch.allclose(region_codes.lengths, exact, rtol=1e-6)
    assert ((region_codes.codes * region_codes.basis.scales).norm(dim=-1, keepdim=True) < 0.999 * exact).all()


def test_products_with_region_codes_approximate_products_with_the_original_regions():
    features, regions = seen(20, 24)
    region_codes = encode_regions(learn_region_basis(features, regions), regions)
    weight = torch.randn(24, 5, generator=torch.Generator().manual_seed(1))
    exact = (signed_sqrt(torch.from_numpy(regions)) - region_codes.basis.centre) @ weight
    assert (region_codes.products(weight) - exact).norm() < ROUNDING * exact.norm()


def test_region_codes_keep_row_order_when_sliced_indexed_and_joined():
    features, regions = seen(2 * IMAGES_PER_CHUNK + 7, 12)
    basis = learn_region_basis(features, regions)
    whole = encode_regions(basis, regions)
    joined = encode_regions(basis, regions[:70]).join(encode_regions(basis, regions[70:]))
    assert len(joined) == len(whole) == 2 * IMAGES_PER_CHUNK + 7
    rows = np.array([3, 100, 0, 3])
    for region_codes in (whole, joined):
        assert torch.allclose(region_codes.codes.float(), whole.codes.float(), atol=2e-3)
        assert torch.allclose(region_codes.lengths, whole.lengths, rtol=1e-5)
        assert torch.equal(region_codes[rows].codes, region_codes.codes[[3, 100, 0, 3]])
        assert torch.equal(region_codes[rows].lengths, region_codes.lengths[[3, 100, 0, 3]])
        assert torch.equal(region_codes[70:90].codes, region_codes.codes[70:90]) and len(region_codes[70:90]) == 20
    assert len(whole[np.zeros(0, np.int64)]) == 0


def test_encoding_no_images_returns_empty_region_codes():
    features, regions = seen(5, 12)
    region_codes = encode_regions(learn_region_basis(features, regions), regions[:0])
    assert len(region_codes) == 0 and isinstance(region_codes, RegionCodes)
    assert region_codes.products(torch.zeros(12, 3)).shape[::2] == (0, 3)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_region_codes_of_the_largest_float16_features_are_finite(kind):
    regions = np.random.default_rng(0).choice([-65504, 65504], (6, 9, 1280)).astype(kind)
    region_codes = encode_regions(learn_region_basis(regions[:, 0], regions), regions)
    assert torch.isfinite(region_codes.codes).all() and torch.isfinite(region_codes.lengths).all()
    assert float(region_codes.lengths.max()) > 5000


def test_code_of_an_image_region_equal_to_the_mean_has_a_positive_norm():
    regions = np.ones((4, 9, 12), np.float32)
    region_codes = encode_regions(learn_region_basis(regions[:, 0], regions), regions)
    assert (region_codes.lengths > 0).all() and torch.isfinite(
        region_codes.products(torch.ones(12, 2)) / region_codes.lengths
    ).all()


def test_region_encoding_reads_at_most_one_chunk_of_images_at_a_time():
    features, regions = seen(3 * IMAGES_PER_CHUNK, 6)

    class OnDisk:
        asked = 0

        def __len__(self):
            return len(regions)

        def __getitem__(self, rows):
            found = regions[rows]
            self.asked = max(self.asked, len(found))
            return found

    disk, told = OnDisk(), []
    region_codes = encode_regions(learn_region_basis(features, disk), disk, lambda: told.append(None))
    assert disk.asked <= IMAGES_PER_CHUNK and len(told) == 3 and len(region_codes) == 3 * IMAGES_PER_CHUNK


@pytest.mark.parametrize("where", ["features", "regions"])
def test_non_finite_features_or_regions_are_refused(where):
    features, regions = seen(5, 12)
    {"features": features, "regions": regions[:, 4]}[where][2, 7] = np.nan
    with pytest.raises(ValueError, match="some of 5 images are not finite"):
        learn_region_basis(features, regions)


def test_region_basis_is_deterministic():
    features, regions = seen(30, 40)
    first, second = learn_region_basis(features, regions), learn_region_basis(features, regions)
    assert torch.equal(first.axes, second.axes) and torch.equal(first.centre, second.centre)


def test_signed_sqrt_keeps_the_sign():
    assert signed_sqrt(torch.tensor([-4.0, 0.0, 9.0])).tolist() == [-2.0, 0.0, 3.0]
