"""Features in shards: ids, features and regions stay together and on the disk; what is damaged is found and redone."""

import hashlib
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from harness.feature_shards import MadeContents, add_shard, read_made, write_arrays

from annotator.errors import AnnotatorError, DiskFull
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.project_status import collect_status
from annotator.store.database.caches import Caches
from annotator.store.database.database import Database
from annotator.store.features import project_contents
from annotator.store.features.feature_cache import FeatureCache, count_features
from annotator.store.features.project_contents import ProjectContents
from annotator.store.features.shards import (
    BASIS_FILE,
    CodedRegions,
    DamagedShard,
    PackedShard,
    list_shards,
    pack_shard,
    publish_shard,
    read_shard,
    write_shard,
)
from annotator.store.features.stored_basis import StoredBasis, publish_basis, read_basis
from annotator.worker.features.region_coding import replace_regions_by_codes, write_features
from annotator.worker.process import Worker

# Adds shards of 50 images without end; of each image all numbers say which it is. Says which shards are kept.
WRITER = """
import sys
from pathlib import Path
import numpy as np
from annotator.store.features.shards import write_shard
for shard in range(int(sys.argv[2]), 10_000):
    ids = np.arange(50 * shard, 50 * shard + 50) % 2000
    features = np.repeat(ids[:, None], 64, 1).astype(np.float16)
    contents = np.stack([ids, np.ones_like(ids)], 1).astype(np.uint32).view(np.uint8)
    write_shard(Path(sys.argv[1]), ids, contents, features, np.repeat(features[:, None], 9, 1))
    print(shard, flush=True)
"""


def add(folder, *ids: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A shard of these images, with features of 4 numbers drawn at random."""
    chance = np.random.default_rng(seed)
    features = chance.normal(size=(len(ids), 4)).astype(np.float16)
    regions = chance.normal(size=(len(ids), 9, 4)).astype(np.float16)
    add_shard(folder, np.array(ids), features, regions)
    return features, regions


def count(folder) -> int:
    return count_features(folder, Caches(), MadeContents())


def test_region_embeddings_of_the_cache_support_every_kind_of_index(tmp_path):
    cache = read_made(tmp_path)
    assert cache.regions.shape == (0, 0, 0) and len(cache.regions) == 0
    features, regions = {}, {}
    for seed, ids in enumerate([(7, 3, 5), (2, 9), (1, 8, 4, 6)]):
        for image_id, *found in zip(ids, *add(tmp_path, *ids, seed=seed), strict=True):
            features[image_id], regions[image_id] = found
        cache.refresh()  # in part shard by shard, as a worker does it
    for one in (cache, read_made(tmp_path)):
        assert sorted(one.image_ids) == list(range(1, 10))
        assert one.regions.shape == (9, 9, 4) and len(one.regions) == 9
        expected = np.stack([regions[image_id] for image_id in one.image_ids])
        assert np.array_equal(one.features[:], np.stack([features[image_id] for image_id in one.image_ids]))
        for rows in ([8, 0, 0, 4], np.array([5]), [], slice(2, 7), slice(None), one.image_ids > 4, -1, np.int64(3)):
            found = one.regions[rows]
            assert type(found) is np.ndarray and found.dtype == np.float16
            assert np.array_equal(found, expected[rows]), rows
        with pytest.raises(IndexError):
            one.regions[[9]]


def test_image_in_two_shards_reads_both_embeddings_from_the_same_shard(tmp_path):
    for seed in range(4):
        features = np.full((3, 4), seed)
        add_shard(tmp_path, np.array([1, 2, 3 + seed]), features, np.repeat(features[:, None], 9, 1))
    cache = read_made(tmp_path)
    assert sorted(cache.image_ids) == [1, 2, 3, 4, 5, 6]
    assert np.array_equal(cache.regions[:].mean(1), cache.features[:])


def test_feature_cache_reads_embeddings_from_disk_without_keeping_them_in_memory(tmp_path):
    ids = np.arange(500)
    for shard in range(4):
        features = np.ones((500, 256), np.float16)
        add_shard(tmp_path, ids + 500 * shard, features, np.repeat(features[:, None], 9, 1))
    on_disk = sum(path.stat().st_size for path in tmp_path.iterdir())
    tracemalloc.start()
    try:
        cache = read_made(tmp_path)
        held, _ = tracemalloc.get_traced_memory()
        assert cache.regions[np.arange(0, 2000, 100)].shape == (20, 9, 256) and cache.features[5:900].all()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cache.features.shape == (2000, 256)
    assert held < on_disk / 100 and most < on_disk / 3
    with pytest.raises(TypeError, match=r"are on the disk: read them by rows"):
        np.asarray(cache.features)


def test_embedding_shard_that_lacks_an_array_is_deleted(tmp_path):
    whole = {
        "image_ids": np.arange(1, 6),
        "contents": MadeContents().load_hashes(np.arange(1, 6)),
        "features": np.ones((5, 4), np.float16),
        "regions": np.ones((5, 9, 4), np.float16),
    }
    write_arrays(tmp_path, whole)
    assert len(read_made(tmp_path)) == count(tmp_path) == 5
    for name in whole:
        without = write_arrays(tmp_path / name, {other: array for other, array in whole.items() if other != name})
        assert count(tmp_path / name) == len(read_made(tmp_path / name)) == 0 and not without.exists(), name


@pytest.mark.process
def test_killed_process_loses_no_embedding_shard_that_it_reported_as_written(tmp_path):
    told = -1
    for wait_for in (1, 4, 9):
        words = [sys.executable, "-c", WRITER, str(tmp_path / "f"), str(told + 1)]
        writer = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        for _ in range(wait_for):
            told = int(writer.stdout.readline())
        writer.kill()
        told = max([told, *map(int, writer.stdout.read().split())])
        writer.wait()
        writer.stdout.close()
        cache = read_made(tmp_path / "f")
        # The writer begins again at 0 after 2,000 images: float16 holds whole numbers exactly up to 2,048.
        told_ids = set(range(min(50 * told + 50, 2000)))
        assert told_ids <= set(cache.image_ids.tolist()), "what was acknowledged is there"
        assert len(cache.image_ids) == len(cache.features) == len(cache.regions) == count(tmp_path / "f")
        assert (cache.features[:] == cache.image_ids[:, None]).all()
        assert (cache.regions[:] == cache.image_ids[:, None, None]).all()


def test_full_disk_raises_an_error_and_leaves_no_partial_shard(tmp_path):
    resource = pytest.importorskip("resource")
    add(tmp_path, 1, 2)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))  # the longest file this process may write
    try:
        with pytest.raises(DiskFull, match=r"could not be written: (?s:.*)Free some space"):
            add(tmp_path, *range(3, 103))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read_made(tmp_path).image_ids.tolist() == [1, 2] and len(list(tmp_path.iterdir())) == 1


def test_mismatched_image_and_region_embeddings_are_refused(tmp_path):
    for regions in (np.zeros((2, 9, 5)), np.zeros((3, 9, 4)), np.zeros((2, 4))):
        with pytest.raises(ValueError, match=r"must be \(n,\), \(n, D\) and \(n, R, D\)"):
            add_shard(tmp_path, np.array([1, 2]), np.zeros((2, 4)), regions)
    assert not list(tmp_path.iterdir())


def test_reading_a_deleted_shard_raises_an_error_with_advice(tmp_path):
    add(tmp_path, 1, 2)
    cache = read_made(tmp_path)
    next(tmp_path.iterdir()).unlink()
    with pytest.raises(AnnotatorError, match=r"can no longer be read (?s:.*)Start the worker again"):
        cache.regions[[0]]


BASIS = StoredBasis(np.zeros(4), np.eye(4)[:, :3], np.ones(3))


def add_coded(folder, *ids: int, basis: StoredBasis = BASIS, seed: int = 0) -> tuple[np.ndarray, CodedRegions]:
    """A shard of these images with random features and codes."""
    chance = np.random.default_rng(seed)
    features = chance.normal(size=(len(ids), 4)).astype(np.float16)
    codes = chance.integers(-127, 128, (len(ids), 9, 3)).astype(np.int8)
    coded = CodedRegions(codes, chance.random((len(ids), 9)).astype(np.float16), basis.name)
    add_shard(folder, np.array(ids), features, coded)
    return features, coded


def test_feature_cache_contains_images_with_raw_and_with_compressed_regions(tmp_path):
    publish_basis(tmp_path, BASIS)
    old, regions = add(tmp_path, 5, 6, 7)
    new, coded = add_coded(tmp_path, 8, 2, seed=1)
    cache = read_made(tmp_path)
    assert cache.image_ids.tolist() == [8, 2, 5, 6, 7] and count(tmp_path) == 5
    assert np.array_equal(cache.features[:], np.concatenate([new, old]))
    assert np.array_equal(cache.codes[[1, 0]], coded.codes[::-1]) and cache.codes.dtype == np.int8
    assert np.array_equal(cache.lengths[:2], coded.lengths) and np.array_equal(cache.regions[2:], regions)
    with pytest.raises(AnnotatorError, match="it has no codes"):
        cache.codes[1:3]


def test_shard_name_is_its_content_hash_and_equal_shards_are_stored_once(tmp_path):
    features, regions = add(tmp_path, 1, 2)
    packed = pack_shard(np.array([1, 2]), MadeContents().load_hashes(np.array([1, 2])), features, regions)
    assert [path.stem for path in tmp_path.iterdir()] == [packed.name]
    assert publish_shard(tmp_path, packed).stem == packed.name and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(DamagedShard, match="has changed on its way"):
        publish_shard(tmp_path, PackedShard(packed.name, packed.content[:-1] + b"x"))
    assert len(list(tmp_path.iterdir())) == 1


def test_corrupt_shard_is_deleted_without_affecting_other_shards(tmp_path):
    publish_basis(tmp_path, BASIS)
    add_coded(tmp_path, 1, 2, seed=1)
    size = len(whole := (first := add_shard(tmp_path, np.array([3]), *_random(3))).read_bytes())
    for place in (0, 9, size // 3, size // 2, size - 1):
        first.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        cache = read_made(tmp_path)
        assert cache.image_ids.tolist() == [1, 2] and not first.exists(), place
        assert "deleted; its images are embedded again" in cache.left_out[0], place
    first.write_bytes(whole[:-5])
    assert read_made(tmp_path).image_ids.tolist() == [1, 2] and not first.exists()
    first.write_bytes(whole)
    assert sorted(read_made(tmp_path).image_ids) == [1, 2, 3]


def _random(seed: int) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    return chance.normal(size=(1, 4)), chance.normal(size=(1, 9, 4))


def test_shards_compressed_with_another_basis_are_skipped_and_the_first_basis_is_kept(tmp_path):
    assert read_basis(tmp_path) is None and publish_basis(tmp_path, BASIS).name == BASIS.name
    other = StoredBasis(np.ones(4), BASIS.axes, BASIS.scales)
    assert publish_basis(tmp_path, other).name == BASIS.name == read_basis(tmp_path).name
    add_coded(tmp_path, 1, 2)
    add_coded(tmp_path, 3, basis=other)
    cache = read_made(tmp_path)
    assert cache.image_ids.tolist() == [1, 2] and count(tmp_path) == 2
    assert "coded along other axes" in cache.left_out[0] and len(list(tmp_path.iterdir())) == 3
    content = bytearray((tmp_path / "basis.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "basis.safetensors").write_bytes(content)
    assert read_basis(tmp_path) is None and len(read_made(tmp_path).image_ids) == 0, "damaged"
    assert publish_basis(tmp_path, BASIS).name == BASIS.name and len(read_made(tmp_path).image_ids) == 2, (
        "learned again"
    )


def test_shard_of_another_embedding_size_is_skipped_but_embeddings_written_later_are_used(tmp_path):
    publish_basis(tmp_path, BASIS)
    add_coded(tmp_path, 1, 2)
    cache = read_made(tmp_path)
    stray = add_shard(tmp_path, np.arange(10, 20), np.ones((10, 6)), np.ones((10, 9, 6)))
    cache.refresh()
    assert cache.image_ids.tolist() == [1, 2] and "features are (9, 6)" in cache.left_out[0]
    assert len(read_made(tmp_path)) == 10 and len(list(tmp_path.iterdir())) == 3, "nothing is deleted"
    stray.unlink()
    write_features(cache, np.array([7]), np.ones((1, 5), np.float16), np.ones((1, 9, 5), np.float16))
    for one in (cache, read_made(tmp_path)):
        assert one.image_ids.tolist() == [7] and one.regions[0].shape == (9, 5) and one.basis is None


def test_deleted_compression_basis_file_is_rewritten_with_the_next_shard(tmp_path):
    publish_basis(tmp_path, BASIS)
    add_coded(tmp_path, 1, 2)
    cache = read_made(tmp_path)
    (tmp_path / BASIS_FILE).unlink()
    write_features(cache, np.array([3]), np.ones((1, 4), np.float16), np.ones((1, 9, 4), np.float16))
    assert sorted(read_made(tmp_path).image_ids) == [1, 2, 3]


def test_refresh_drops_shards_that_another_process_deleted(tmp_path):
    add(tmp_path, 1, 2)
    cache = read_made(tmp_path)
    first = next(tmp_path.iterdir())
    features, _ = add(tmp_path, 3, seed=1)
    first.unlink()
    cache.refresh()
    assert cache.image_ids.tolist() == [3] and np.array_equal(cache.features[:], features)


def test_embeddings_of_a_wrong_data_type_are_not_read(tmp_path):
    numbers = {"image_ids": np.arange(2), "features": np.ones((2, 4), np.int16), "regions": np.ones((2, 9, 4), "f2")}
    write_arrays(tmp_path, numbers | {"contents": MadeContents().load_hashes(np.arange(2))})
    cache = read_made(tmp_path)
    assert len(cache) == 0 and "its features are of another type" in cache.left_out[0]


def test_compressed_regions_that_do_not_match_their_basis_are_not_read(tmp_path):
    publish_basis(tmp_path, BASIS)
    for dimensions, axes in ((4, 2), (5, 3)):
        codes = CodedRegions(np.zeros((2, 9, axes)), np.ones((2, 9)), BASIS.name)
        add_shard(tmp_path, np.array([1, 2]), np.ones((2, dimensions)), codes)
    with pytest.raises(ValueError, match=r"must be \(n, R, K\) and \(n, R\)"):
        codes = CodedRegions(np.zeros((1, 9, 3)), np.ones((1, 8)), BASIS.name)
        pack_shard(np.array([1]), np.zeros((1, 8)), np.ones((1, 4)), codes)
    cache = read_made(tmp_path)
    assert len(cache) == 0 and len(cache.left_out) == 2 and [path.name for path in tmp_path.iterdir()] == [BASIS_FILE]


def test_cache_contents_do_not_depend_on_shard_order(tmp_path):
    shards = [(np.array([1, 2, seed + 3]), *(np.repeat(part, 3, 0) for part in _random(seed))) for seed in range(5)]
    for folder, order in (("a", shards), ("b", shards[::-1])):
        for shard in order:
            add_shard(tmp_path / folder, *shard)
    one, other = read_made(tmp_path / "a"), read_made(tmp_path / "b")
    assert np.array_equal(one.image_ids, other.image_ids) and len(one.image_ids) == 7
    assert np.array_equal(one.features[:], other.features[:]) and np.array_equal(one.regions[:], other.regions[:])


def test_embeddings_obtained_before_a_cache_refresh_stay_unchanged_by_it(tmp_path):
    add(tmp_path, 1, 2)
    cache = read_made(tmp_path)
    features, before = cache.features, cache.features[:]
    add(tmp_path, 3, 4, seed=1)
    cache.refresh()
    assert len(features) == 2 and len(cache.features) == 4 and np.array_equal(features[:], before)


def test_truncated_shard_in_use_raises_an_error(tmp_path):
    add(tmp_path, 1, 2)
    cache = read_made(tmp_path)
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:-24])
    with pytest.raises(AnnotatorError, match="ends too early"):
        cache.regions[:]


def test_embeddings_of_another_projects_images_are_skipped_but_never_deleted(tmp_path):
    ids = np.arange(1, 9)
    for seed in range(6):  # names are sums: in one order or the other
        add_shard(tmp_path, ids, *_several(8, seed), project=2)
    cache = read_made(tmp_path)
    assert len(cache) == count(tmp_path) == 0
    assert "48 images in 6 files" in cache.left_out[0] and "an older project.db was put back" in cache.left_out[0]
    mixed = MadeContents().load_hashes(ids)
    mixed[3:] = MadeContents(project=2).load_hashes(ids[3:])
    features, regions = _several(8, 7)
    write_shard(tmp_path, ids, mixed, features, regions)
    own = add(tmp_path, 4, 6, 8, seed=8)
    cache.refresh()
    for one in (cache, read_made(tmp_path)):
        order = np.argsort(one.image_ids)
        assert one.image_ids[order].tolist() == [1, 2, 3, 4, 6, 8] and count(tmp_path) == 6
        assert np.array_equal(one.features[order], np.concatenate([features[:3], own[0]]))
        assert np.array_equal(one.regions[order], np.concatenate([regions[:3], own[1]]))
        assert len(one.left_out) == 1 and "53 images in 7 files" in one.left_out[0]
    publish_basis(tmp_path, BASIS)
    cache.refresh()
    replace_regions_by_codes(cache)
    assert len(list_shards(tmp_path)) == 6 + 1 + 2, "a file with rows of others is not deleted"
    assert sorted(read_made(tmp_path).image_ids) == [1, 2, 3, 4, 6, 8] and count(tmp_path) == 6


def _several(images: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    return chance.normal(size=(images, 4)).astype(np.float16), chance.normal(size=(images, 9, 4)).astype(np.float16)


def test_embeddings_of_another_project_do_not_set_the_embedding_size(tmp_path):
    add_shard(tmp_path, np.arange(1, 100), np.ones((99, 6)), np.ones((99, 9, 6)), project=2)
    add(tmp_path, 1, 2)
    assert read_made(tmp_path).features.shape == (2, 4)


def test_embeddings_of_unknown_image_ids_are_used_only_after_their_image_is_registered(tmp_path):
    add_shard(tmp_path, np.array([4, 5, 6, 7]), *_several(4, 1))
    other = add_shard(tmp_path, np.array([5, 6, 8]), *_several(3, 2), project=2)
    project, caches = MadeContents(last=5), Caches()
    cache = FeatureCache(tmp_path, project)
    for project.last, expected in ((5, [4, 5]), (5, [4, 5]), (6, [4, 5, 6]), (9, [4, 5, 6, 7])):
        cache.refresh()
        assert cache.image_ids.tolist() == expected, project.last
        assert count_features(tmp_path, caches, project) == len(expected), project.last
    assert np.array_equal(cache.features[:], _several(4, 1)[0])
    assert len(cache.left_out) == 1 and "3 images in 1 file of" in cache.left_out[0] and other.exists()


def test_replacing_regions_by_compressed_ones_keeps_the_content_hashes_of_their_images(tmp_path):
    publish_basis(tmp_path, BASIS)
    add(tmp_path, 3, 1, 2)
    cache = read_made(tmp_path)
    replace_regions_by_codes(cache)
    [shard] = [read_shard(path) for path in list_shards(tmp_path)]
    assert shard.basis == BASIS.name and shard.image_ids.tolist() == [3, 1, 2]
    assert np.array_equal(shard.contents, MadeContents().load_hashes(shard.image_ids))


def test_project_contents_loads_sha256_prefixes_for_image_ids_in_any_order(db, monkeypatch):
    with db.writing() as sql:
        sql.execute("UPDATE image SET sha256 = 'not hexadecimal' WHERE id = 3")
        sql.execute("UPDATE image SET sha256 = 'abc' WHERE id = 4")
        sql.execute("UPDATE image SET sha256 = upper(sha256) WHERE id = 5")
        sql.execute("INSERT INTO image (id, name, sha256, width, height) VALUES (9000, 'x', ?, 1, 1)", ["12" * 32])
    project = ProjectContents(db)
    expected = dict(db.tuples("SELECT id, sha256 FROM image"))
    assert project.get_newest_id() == 9000
    for block in (project_contents.IDS_PER_QUERY, 3):
        monkeypatch.setattr(project_contents, "IDS_PER_QUERY", block)
        for ids in ([9000, 2, 2, 1], range(1, 30), [24, 3, 9000, 7, 5, 4, 10**12, 0, -5], []):
            found = project.load_hashes(np.array(ids, np.int64))
            assert found.shape == (len(ids), 8) and found.dtype == np.uint8
            for image_id, row in zip(ids, found, strict=True):
                text = expected.get(image_id, "0" * 16)
                digits = text[:16].lower() if len(text) == 64 or image_id not in expected else None
                assert bytes(row).hex() == (digits or hashlib.sha256(text.encode()).hexdigest()[:16]), image_id


@pytest.mark.slow
def test_images_with_reused_ids_are_embedded_again_after_restoring_an_older_database(project, photos):
    """The other half of the images was registered in another order after it, so that ids were given again."""
    db = Database(project)
    ids = np.arange(1, 25)
    made_of = ProjectContents(db).load_hashes(ids)
    made_of[12:] = made_of[12:][::-1]
    marked = np.arange(24)[:, None] * np.ones(1280)
    write_shard(db.paths.features(DEFAULT_BACKBONE), ids, made_of, marked, np.repeat(marked[:, None], 9, 1))
    assert collect_status(db)["features"] == 12
    for missing in (12, 0):
        worker = Worker(project)
        try:
            assert len(worker.image_embedder.find_missing()) == missing
            worker.image_embedder.embed_missing()
            cache = worker.context.get_features()
            assert not worker.image_embedder.find_missing() and sorted(cache.image_ids) == ids.tolist()
            order = np.argsort(cache.image_ids)
            assert np.array_equal(cache.features[order[:12]], marked[:12]), "the right ones are kept"
            assert (cache.features[order[12:]] != marked[12:]).any(1).all()
            assert "12 images in 1 file of" in cache.left_out[0]
            assert collect_status(db)["features"] == 24
        finally:
            worker.close()
