"""What a monitor is told: figures for a token that may read them, and whether people can work, for anybody."""

import http.client
import uuid

import pytest
from harness.served import serving
from prometheus_client.parser import text_string_to_metric_families

from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions

pytestmark = pytest.mark.process


def get(port: int, path: str, secret: str = "", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    if secret:
        headers["authorization"] = f"Bearer {secret}"
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def figures(text: str) -> dict[tuple[str, ...], float]:
    """(name, values of its labels) -> value."""
    families = text_string_to_metric_families(text)
    return {(sample.name, *sample.labels.values()): sample.value for one in families for sample in one.samples}


def test_metrics_require_a_metrics_token_and_report_counts_without_names(project, annotator):
    secret = annotator("tokens", "make", "project", "prometheus", "--for", "metrics").stdout.strip()
    other = annotator("tokens", "make", "project", "tagger", "--for", "predictions").stdout.strip()
    db = Database(project)
    given = [Decision(str(uuid.uuid4()), "label", "Ann Onymous", "click", image_id, 1, 1) for image_id in (1, 2, 3)]
    decisions.save(db, given)
    decisions.save(db, [Decision(str(uuid.uuid4()), "undo", "Ann Onymous", "click", undoes=given[0].uuid)])
    decisions.save(db, [Decision(str(uuid.uuid4()), "label", "import", "import", 4, 1, 1)])  # a file is not a person
    with serving(project) as served:
        for wrong in ("", secret[:-1] + "!", other):
            assert get(served.port, "/metrics", wrong)[0] == 401
        assert get(served.port, "/metrics", secret, origin=served.address)[0] == 403
        status, text = get(served.port, "/metrics", secret)
        found = figures(text)
        assert status == 200 and "Onymous" not in text and "fox" not in text and ".jpg" not in text
        assert found["annotator_images", "all"] == 24 and found["annotator_images", "without_decision"] == 21
        assert found["annotator_labels", "present"] == 3 and found["annotator_decisions", "click"] == 2
        assert found["annotator_decisions_stored_total",] == 5 and found["annotator_annotators",] == 1
        assert found["annotator_disk_free_bytes",] > 0
        assert found["annotator_request_seconds_count", "metrics.metrics", "401"] == 3
        assert get(served.port, "/api/work", secret)[0] in (401, 403)  # and it opens no other door
        assert figures(get(served.port, "/metrics", secret)[1])[
            "annotator_request_seconds_count", "metrics.metrics", "200"
        ]


def test_ready_route_needs_no_token_and_returns_503_when_the_project_is_missing(project):
    with serving(project) as served:
        assert get(served.port, "/ready") == (200, "ready\n")
        assert get(served.port, "/ready", host="evil.example")[0] == 403
        project.rename(project.with_name("elsewhere"))
        status, said = get(served.port, "/ready")
        project.with_name("elsewhere").rename(project)
        assert (status, said) == (503, "not ready: the project cannot be read\n")
