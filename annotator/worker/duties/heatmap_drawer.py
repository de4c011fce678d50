"""Draws requested heat maps, and likely ones in advance."""

from annotator.queues import review_queue
from annotator.settings import PREFETCHED_HEATMAP_IMAGES
from annotator.snapshot import suggestions
from annotator.snapshot.snapshot import read_snapshot
from annotator.store.database import heartbeat, jobs
from annotator.store.labels import decisions
from annotator.worker.features.worker_context import WorkerContext

REQUESTS_PER_STEP = 2  # requests drawn before more urgent duties are checked


class HeatmapDrawer:
    """The worker duty of drawing heat maps."""

    def __init__(self, context: WorkerContext):
        self._context, self._db = context, context.db
        self._explainer = None  # importing torch takes seconds
        self._undrawable: set[int] = set()  # images whose heat maps of this run could not be drawn
        self._drawn_ahead: tuple | None = None  # (run, version, newest decision) whose heat maps ahead are all drawn

    def forget_old_run(self) -> None:
        """Drop requests for older runs and retry failed images."""
        self._undrawable.clear()
        jobs.delete_stale_heatmaps(self._db)

    def draw_requested(self) -> bool:
        """Draw requested heat maps, and return False if there are none."""
        asked = jobs.claim(self._db, "heatmap", REQUESTS_PER_STEP)
        for job in asked:
            try:
                # request_heatmap
                assert job.run_id is not None and job.image_id is not None and job.class_id is not None
                self.draw(job.run_id, job.image_id, [job.class_id])
                jobs.finish(self._db, job)
            except Exception as error:  # such as a damaged head: the page shows the error, and the worker continues
                jobs.fail(self._db, job, str(error) or repr(error))
        return bool(asked)

    def draw_in_advance(self) -> bool:
        """Draw the missing heat maps of one image that pages will show soon, and return False if there is none."""
        snapshot = read_snapshot(self._db)
        if snapshot is None:
            return False
        run, state = snapshot.run, (snapshot.run.id, snapshot.run.version, decisions.get_newest_decision_id(self._db))
        if state == self._drawn_ahead:
            return False
        ahead = review_queue.find_first_images(self._db, snapshot, PREFETCHED_HEATMAP_IMAGES)
        answered = suggestions.load_answered_classes(self._db, ahead)
        for image_id, chips in suggestions.find_suggestions(
            snapshot.predictions, answered, ahead, run.threshold
        ).items():
            wanted = [
                chip.class_id for chip in chips if not self._db.paths.heatmap(run.id, image_id, chip.class_id).exists()
            ]
            if wanted and image_id not in self._undrawable:
                self._context.report_state("drawing heat maps")
                try:
                    self.draw(run.id, image_id, wanted)
                except Exception as error:
                    self._undrawable.add(image_id)
                    heartbeat.record_error(self._db, str(error) or repr(error))
                return True
        self._drawn_ahead = state
        return False

    def draw(self, run_id: int, image_id: int, class_ids: list[int]) -> None:
        """Draw an image's heat maps. Raises AnnotatorError."""
        if self._explainer is None or self._explainer.backbone.name != self._context.get_backbone_name():
            from annotator.worker.duties.explain import Explainer

            self._explainer = Explainer(self._db, self._context.get_backbone())
        self._explainer.draw(run_id, image_id, class_ids)
