"""Answers searches by example: an image, a crop or words.

Text embeddings match only projected image embeddings, so words are compared here.
"""

import io
import math
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from annotator.errors import AnnotatorError, DiskFull
from annotator.store.classes import name_texts
from annotator.store.database import heartbeat
from annotator.store.images import images
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.locations.location import start_reading
from annotator.store.networks import search_examples
from annotator.store.networks.search_examples import PART, PICTURE, ExampleAnswer, ExampleRequest
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.worker.features.worker_context import WorkerContext
from spmll.zero_shot.prompts import NAME_SLOT, build_prompts

if TYPE_CHECKING:
    from spmll.backbones.text_image import TextImageNetwork

CHUNK_ROWS = 4096  # images compared with words at once


class SearchAnswerer:
    """The worker duty of answering searches by example."""

    def __init__(self, context: WorkerContext):
        self._context, self._db = context, context.db
        self._texts: TextImageNetwork | None = None
        search_examples.delete_old(self._db)

    def answer_newest(self) -> bool:
        """Answer the newest request of the person who waits longest. Return False if none."""
        asked = next(iter(search_examples.load_waiting(self._db)), None)
        if asked is None:
            return False
        try:
            try:
                search_examples.save_answer(self._db, asked, self._compute_answer(asked))
            except DiskFull:
                raise
            except (AnnotatorError, BadImage, ValueError) as error:
                search_examples.save_error(self._db, asked, f"{asked.description} cannot be compared: {error}")
            except Exception as error:  # such as a network without memory: the page shows it, and the worker continues
                heartbeat.record_error(self._db, repr(error))
                search_examples.save_error(self._db, asked, f"{asked.description} cannot be compared: {error!r}")
        except DiskFull as error:  # the request waits, and the worker does what it can
            with suppress(AnnotatorError):
                heartbeat.record_error(self._db, str(error))
            return False
        return True

    def _compute_answer(self, asked: ExampleRequest) -> ExampleAnswer:
        if asked.kind not in (PICTURE, PART):
            return self._compare_with_words(asked.name)
        from annotator.worker.features.embed import forward, read_batch  # loads torch

        backbone, bands = self._context.get_backbone(), get_shown_bands(self._db)
        if asked.kind == PART:
            pixels = backbone.preprocess(self._crop_part(asked, backbone.input_size))[None]
        else:
            content = search_examples.read_picture(self._db, asked)
            batch = read_batch([lambda: io.BytesIO(content)], [0], backbone, bands)
            if batch.failures:
                raise AnnotatorError(batch.failures[0][1])
            pixels = batch.pixels
        vector = forward(pixels, backbone, False)[0][0]
        if not np.isfinite(vector).all():
            raise AnnotatorError(f"{backbone.name} gives numbers for it that are not finite.")
        # As features are stored.
        return ExampleAnswer(backbone.name, vector.astype(np.float16).astype(np.float32))

    def _crop_part(self, asked: ExampleRequest, size: int):
        left, top, right, bottom = asked.box
        least = (math.ceil(size / (right - left)), math.ceil(size / (bottom - top)))
        source = start_reading(images.find_image_source(self._db, asked.image_id))()
        picture = open_rgb(source, at_least=least, bands=get_shown_bands(self._db))
        width, height = picture.size
        box = (math.floor(left * width), math.floor(top * height), math.ceil(right * width), math.ceil(bottom * height))
        return picture.crop(box)

    def _compare_with_words(self, words: str) -> ExampleAnswer:
        import torch

        from annotator.worker.features.backbone import load_project_network
        from spmll.backbones.text_image import TextImageNetwork

        name = name_texts.get_text_network(self._db)
        if not name:
            raise AnnotatorError(f"{self._context.get_backbone_name()} knows no texts. Settings has networks that do.")
        if self._texts is None or self._texts.name != name:
            self._context.report_state("loading the network")
            self._texts = TextImageNetwork(self._context.get_backbone(), load_project_network(self._db, name))
        network = self._texts
        around = [template for template in name_texts.load_templates(self._db) if NAME_SLOT in template]
        vector = torch.nn.functional.normalize(network.encode_texts(build_prompts([words], around)).mean(0), dim=0)
        self._context.report_state("comparing images with words")
        cache = self._context.get_features()
        if not len(cache):
            raise AnnotatorError("no image is analyzed yet. The worker does that; try again soon.")
        values = np.empty(len(cache), np.float32)
        for start in range(0, len(cache), CHUNK_ROWS):
            features = torch.from_numpy(np.asarray(cache.features[start : start + CHUNK_ROWS], np.float32))
            values[start : start + CHUNK_ROWS] = (network.project_features(features) @ vector).numpy()
        order = np.argsort(cache.image_ids, kind="stable")
        return ExampleAnswer(name, None, cache.image_ids[order], values[order])
