"""Prelabeling: a vision-language model sees every image, and its answers become a prediction source.

Answers are stored every few seconds. The next run asks only about unscored images. The training method `auto` weights
the source by its agreement with annotators.
"""

import base64
import io
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from PIL import Image

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.tagging.chat_server import ChatServer, RequestRefusedError, ServerBusyError
from annotator.exchange.tagging.questions import RETRY_PROMPT, SYSTEM_PROMPT, ClassGroup, parse_answer
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.images.images import find_image_source
from annotator.store.labels import audits
from annotator.store.locations.location import open_source
from annotator.store.pictures.bands import BandChoices
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.store.runs import prediction_sources, tagging_state
from annotator.store.runs.prediction_sources import PROBABILITY, ScoreBlock
from annotator.store.runs.tagging_state import TaggingState

MAX_TRIES = 5  # requests for one question, when the server is busy
MAX_INVALID_ANSWERS = 3  # answers that are none, after which a question stays without one
MAX_FAILURES_IN_A_ROW = 12  # questions without an answer, after which the run ends
FLUSH_SECONDS = 20.0  # between two versions of the source, and FLUSH_REST_FACTOR times what writing one takes
FLUSH_REST_FACTOR = 20.0
GRACE_SECONDS = 3.0  # that a stopped run waits for what is still asked
IMAGES_AHEAD_PER_JOB = 4  # images a thread that are decoded before they are asked about
TEST_COLORS = {"red": (214, 30, 30), "green": (30, 160, 40), "blue": (30, 60, 200), "yellow": (240, 220, 30)}
TEST_COLORS |= {"black": (10, 10, 10), "white": (250, 250, 250)}
TEST_PICTURES = 3  # plain pictures that a model must name the colour of: chance does that once in 216
JPEG_QUALITY = 85  # of the JPEGs that are sent


@dataclass(frozen=True)
class TaggingOptions:
    """The options of a prelabeling run.

    Attributes:
        name: Name of the prediction source.
        pixels: Longer side of sent images.
        jobs: Parallel questions.
        limit: Maximum number of images, 0 for all.
    """

    model: str
    name: str
    pixels: int = 448
    classes_per_question: int = 40
    jobs: int = 2
    limit: int = 0
    include_scored: bool = False
    skip_color_test: bool = False


@dataclass(frozen=True)
class RequestForm:
    """The form of requests that the server supports.

    Attributes:
        answer: "json_schema", "json_object", or "" for text with JSON.
        has_tokens: Answers have log probabilities.
    """

    answer: str = "json_schema"
    has_tokens: bool = True


REQUEST_FORMS = (
    RequestForm(),
    RequestForm(has_tokens=False),
    RequestForm("json_object", False),
    RequestForm("", False),
)


@dataclass
class TaggingResult:
    """The result of a prelabeling run.

    Attributes:
        images: Newly scored images.
        without: Questions without a valid answer.
        had: Images scored before.
        error: Reason for an early end, or "".
    """

    images: int = 0
    without: int = 0
    unread: int = 0
    had: int = 0
    seconds: float = 0.0
    is_stopped: bool = False
    error: str = ""
    form: RequestForm = field(default_factory=RequestForm)


def tag_images(
    db: Database,
    server: ChatServer,
    options: TaggingOptions,
    by: str,
    report: Callable[[TaggingState], None] = lambda state: None,
    stop: threading.Event | None = None,
) -> TaggingResult:
    """Ask a model about all images of a project, and store its answers as predictions.

    Args:
        report: Receives the state once per second.
        stop: Set it to end soon with answers stored.

    Raises:
        AnnotatorError: Nothing to ask, another active run, or an unusable server or model.
    """
    db.check_writable()
    known = classes.load_active_classes(db)
    if not known:
        raise AnnotatorError("The project has no classes to ask about. Add some: annotator classes add PROJECT NAME")
    groups = [
        ClassGroup(
            *zip(
                *((one.id, one.name, one.description) for one in known[start : start + options.classes_per_question]),
                strict=True,
            )
        )
        for start in range(0, len(known), options.classes_per_question)
    ]
    state = tagging_state.claim(db, server.display_url, options.model, options.name)
    run = _TaggingRun(db, server, options, by, report, stop or threading.Event(), state)
    try:
        return run.run(groups)
    finally:
        tagging_state.release(db)


class _TaggingRun:
    def __init__(
        self,
        db: Database,
        server: ChatServer,
        options: TaggingOptions,
        by: str,
        tell,
        stop: threading.Event,
        state: TaggingState,
    ):
        self._db, self._server, self._options, self._by, self._tell, self._stop = db, server, options, by, tell, stop
        self.state = state
        self._outcome = TaggingResult()
        self._waiting: list[tuple[int, dict[int, float]]] = []  # image -> scores that are not stored yet
        self._flushed_at, self._flush_took = time.monotonic(), 0.0
        self._failed, self._last_error = 0, ""

    def run(self, groups: Sequence[ClassGroup]) -> TaggingResult:
        began, outcome = time.monotonic(), self._outcome
        asked = self._list_questions(groups)
        outcome.had = self._with_scores
        self._report(0, len(asked), began)
        form = self._wait_for_form(groups[0], len(asked), began) if asked else None
        if form is not None:
            outcome.form = form
            self._ask_all(asked, began)
            self._flush()
        outcome.seconds = time.monotonic() - began
        return outcome

    def _list_questions(self, groups: Sequence[ClassGroup]) -> list[tuple[int, list[ClassGroup]]]:
        image_ids = audits.load_readable_image_ids(self._db)
        if not len(image_ids):
            raise AnnotatorError("The project has no images that can be read.")
        image_ids = np.random.default_rng(0).permutation(image_ids)
        class_ids = [class_id for group in groups for class_id in group.class_ids]
        lacks = np.ones((len(image_ids), len(groups)), bool)
        before = [one for one in prediction_sources.open_scores(self._db) if one.source.name == self._options.name]
        if before and not self._options.include_scored:
            scored = ~np.isnan(prediction_sources.load_aligned_scores(self._db, before[0], image_ids, class_ids))
            start = 0
            for place, group in enumerate(groups):
                lacks[:, place] = ~scored[:, start : start + len(group.class_ids)].any(1)
                start += len(group.class_ids)
        self._with_scores = int((~lacks.any(1)).sum())
        rows = np.flatnonzero(lacks.any(1))[: self._options.limit or None]
        return [(int(image_ids[row]), [groups[place] for place in np.flatnonzero(lacks[row]).tolist()]) for row in rows]

    def _wait_for_form(self, group: ClassGroup, total: int, began: float) -> RequestForm | None:
        """Return `_find_request_form` of a thread, or None after a stop, which an unanswered request must not delay."""
        pool = ThreadPoolExecutor(1)
        try:
            pending = pool.submit(self._find_request_form, group)
            while not self._should_stop() and not wait([pending], 0.5).done:
                self._report(0, total, began)
            self._outcome.is_stopped = self._stop.is_set()
            return None if self._outcome.is_stopped else pending.result()
        finally:
            pool.shutdown(wait=False)

    def _find_request_form(self, group: ClassGroup) -> RequestForm:
        """Return the form that server and model support, found by trying. Raises AnnotatorError if unusable."""
        names = tuple(TEST_COLORS)
        colors = random.Random(time.time_ns()).sample(names, TEST_PICTURES)
        asked = ClassGroup(tuple(range(len(names))), names, ("",) * len(names))
        text = "One colour fills this image. Which? Say yes for that one, and no for all others.\n" + "\n".join(names)
        for number, form in enumerate(REQUEST_FORMS):
            try:
                seen = [self._names_color(form, asked, text, colour) for colour in colors]
            except RequestRefusedError as refused:
                is_last = number == len(REQUEST_FORMS) - 1
                if is_last or refused.status in (401, 403, 404) or not 400 <= refused.status < 500:
                    raise self._unusable_error(refused) from refused
                continue
            except ServerBusyError as error:
                raise AnnotatorError(
                    f"{self._server.display_url} cannot be asked: {error}. Is the server running, and is this its "
                    "address? It usually ends in /v1."
                ) from error
            if all(seen) or self._options.skip_color_test:
                return form
            if form.answer and not any(seen) and number < len(REQUEST_FORMS) - 1:
                continue  # some servers accept a schema and answer nonsense
            raise AnnotatorError(
                f"{self._options.model} does not seem to see images: it named {sum(seen)} of {TEST_PICTURES} plain "
                f"colours ({', '.join(colors)}). Choose a vision model; --unchecked asks it all the same."
            )
        raise AssertionError("the last form returns or raises")

    def _names_color(self, form: RequestForm, asked: ClassGroup, text: str, colour: str) -> bool:
        picture = _to_data_url(Image.new("RGB", (96, 96), TEST_COLORS[colour]), 96)
        answer = self._send_with_retries(lambda: self._server.ask(self._build_request(form, asked, text, picture)))
        chances = parse_answer(answer["text"], asked, answer["tokens"])
        return (
            bool(chances)
            and max(chances, key=lambda key: chances[key]) == asked.names.index(colour)
            and (max(chances.values()) > 0.5)
        )

    def _unusable_error(self, refused: RequestRefusedError) -> AnnotatorError:
        model = self._options.model
        if refused.status in (401, 403):
            return AnnotatorError(
                f"{self._server.display_url} accepts requests with a key only: {refused}. Put the key into an "
                "environment variable and name it: annotator tag --key-from NAME, or for pages annotator serve "
                "--tagger-url NAME=URL"
            )
        try:
            names = self._server.list_models()
        except (ServerBusyError, RequestRefusedError):
            names = []
        if names and model not in names:
            return AnnotatorError(f"{self._server.display_url} has no model {model!r}. {did_you_mean(model, names)}")
        return AnnotatorError(
            f"{self._server.display_url} does not answer about images with {model}: {refused}. Is it a vision model, "
            "and does the address end where /chat/completions begins, usually in /v1?"
        )

    def _ask_all(self, asked: Sequence[tuple[int, list[ClassGroup]]], began: float) -> None:
        """Ask all questions, `jobs` in parallel, and store answers. After a stop, pending ones get GRACE_SECONDS."""
        most, outcome, bands = IMAGES_AHEAD_PER_JOB * self._options.jobs, self._outcome, get_shown_bands(self._db)
        left, done, over_at = iter(asked), 0, 0.0
        pool, running = ThreadPoolExecutor(self._options.jobs), set[Future[tuple[int, dict[int, float], int, str]]]()
        try:
            while True:
                is_over = self._should_stop()
                while not is_over and len(running) < most and (one := next(left, None)):
                    running.add(pool.submit(self._ask_about_image, *one, bands))
                if is_over:
                    over_at = over_at or time.monotonic()
                    running = {future for future in running if not future.cancel()}
                if not running or (over_at and time.monotonic() - over_at > GRACE_SECONDS):
                    break
                finished, running = wait(running, 0.5, FIRST_COMPLETED)
                for future in finished:
                    self._record_answers(*future.result())
                    done += 1
                self._report(done, len(asked), began)
                if self._should_flush():
                    self._flush()
        finally:
            if outcome.error:
                self._stop.set()  # nobody asks again
            pool.shutdown(wait=False, cancel_futures=True)
        outcome.is_stopped = self._stop.is_set() and not outcome.error

    def _ask_about_image(
        self, image_id: int, groups: Sequence[ClassGroup], bands: BandChoices
    ) -> tuple[int, dict[int, float], int, str]:
        """Return (image id, score by class id, number of unanswered questions, why it failed or "")."""
        chances: dict[int, float] = {}
        try:
            source = open_source(find_image_source(self._db, image_id), patient=True)
            pixels = self._options.pixels
            picture = _to_data_url(open_rgb(source, at_least=(pixels, pixels), bands=bands), pixels)
        except (BadImage, AnnotatorError, OSError) as error:
            return image_id, chances, -1, str(error)
        without, why = 0, ""
        for group in groups:
            if self._stop.is_set():
                return image_id, chances, without, why
            try:
                answered = self._ask_question(group, picture)
            except (ServerBusyError, RequestRefusedError) as error:
                answered, why = {}, str(error)
            else:
                why = why or ("" if answered else "it wrote no answer that can be read")
            chances |= answered
            without += not answered
        return image_id, chances, without, why

    def _ask_question(self, group: ClassGroup, picture: str) -> dict[int, float]:
        form, spoken = self._outcome.form, ""
        for _ in range(MAX_INVALID_ANSWERS):
            request = self._build_request(form, group, group.prompt, picture, spoken)
            answer = self._send_with_retries(lambda request=request: self._server.ask(request))
            if chances := parse_answer(answer["text"], group, answer["tokens"]):
                return chances
            if self._stop.is_set():
                break
            spoken = answer["text"][:2000] or "(nothing)"
        return {}

    def _build_request(
        self, form: RequestForm, group: ClassGroup, text: str, picture: str, spoken: str = ""
    ) -> dict[str, Any]:
        """Return a chat request. `spoken` is the model's previous answer if that was invalid."""
        content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": picture}}]
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM_PROMPT},
            {"role": "user", "content": content},
        ]
        if spoken:
            messages += [{"role": "assistant", "content": spoken}, {"role": "user", "content": RETRY_PROMPT}]
        request: dict[str, Any] = {
            "model": self._options.model,
            "messages": messages,
            "temperature": 0,
            "max_tokens": group.max_answer_tokens,
        }
        if form.answer == "json_schema":
            schema = {"name": "classes", "strict": True, "schema": group.schema}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif form.answer:
            request["response_format"] = {"type": form.answer}
        return request | ({"logprobs": True, "top_logprobs": 5} if form.has_tokens else {})

    def _send_with_retries(self, send: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        for number in range(MAX_TRIES):
            try:
                return send()
            except ServerBusyError as error:
                pause = error.after or 0.25 * 2**number
                if number == MAX_TRIES - 1 or self._stop.wait(pause):
                    raise
        raise AssertionError("the last try returns or raises")

    def _record_answers(self, image_id: int, chances: dict[int, float], without: int, why: str) -> None:
        outcome = self._outcome
        if without < 0:
            outcome.unread += 1
            return
        outcome.without += without
        if chances:
            outcome.images += 1
            self._waiting.append((image_id, chances))
            self._failed = 0
        elif without:
            self._failed, self._last_error = self._failed + 1, why
            if self._failed >= MAX_FAILURES_IN_A_ROW:
                outcome.error = (
                    f"{self._failed} images in a row stayed without an answer; the last time {why}. What was said "
                    "before is stored, and the same command goes on from there."
                )

    def _should_stop(self) -> bool:
        if self._outcome.error:
            return True
        if not self._stop.is_set() and tagging_state.should_stop(self._db, self.state):
            self._stop.set()
        return self._stop.is_set()

    def _should_flush(self) -> bool:
        return time.monotonic() - self._flushed_at > max(FLUSH_SECONDS, FLUSH_REST_FACTOR * self._flush_took)

    def _flush(self) -> None:
        if self._waiting:
            began = time.monotonic()
            said, self._waiting = self._waiting, []
            class_ids = sorted({class_id for _, chances in said for class_id in chances})
            prediction_sources.add(
                self._db,
                self._options.name,
                PROBABILITY,
                self._by,
                np.array([image_id for image_id, _ in said], np.int64),
                np.array(class_ids, np.int64),
                lambda: _build_blocks(said, class_ids),
            )
            self._flush_took = time.monotonic() - began
        self._flushed_at = time.monotonic()

    def _report(self, done: int, total: int, began: float) -> None:
        seconds, outcome = time.monotonic() - began, self._outcome
        rate = 60 * done / seconds if done and seconds else 0.0
        left = (total - done) * seconds / done if done else None
        self.state = replace(
            self.state, heartbeat_at=time.time(), done=done, of=total, per_minute=rate, seconds_left=left,
            without=outcome.without, error=self._last_error if self._failed else "",
        )  # fmt: skip
        tagging_state.report(self._db, self.state)
        self._tell(self.state)


def _build_blocks(said: Sequence[tuple[int, dict[int, float]]], class_ids: Sequence[int]) -> Iterator[ScoreBlock]:
    place = {class_id: column for column, class_id in enumerate(class_ids)}
    for start in range(0, len(said), prediction_sources.CHUNK_ROWS):
        some = said[start : start + prediction_sources.CHUNK_ROWS]
        scores = np.full((len(some), len(class_ids)), np.nan)
        for row, (_, chances) in enumerate(some):
            for class_id, chance in chances.items():
                scores[row, place[class_id]] = chance
        yield np.array([image_id for image_id, _ in some], np.int64), np.array(class_ids, np.int64), scores


def _to_data_url(picture: Image.Image, pixels: int) -> str:
    picture = picture.copy()
    picture.thumbnail((pixels, pixels), Image.Resampling.BICUBIC)
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=JPEG_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(content.getvalue()).decode()
