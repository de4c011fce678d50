"""Programs send predictions with a token that can do nothing else; browsers cannot."""

import http.client
import json
import re
from pathlib import Path

import pytest
from harness.served import Served, serving

from annotator.store.database.database import Database
from annotator.store.people import access_tokens
from annotator.store.runs import prediction_sources

pytestmark = pytest.mark.process

PAGE = Path(__file__).resolve().parents[2] / "docs" / "taggers.md"
[RECIPE] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def send(served: Served, body, secret=None, path="/api/predictions", method="POST", **headers):
    """Status and JSON of one request with exactly these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    if secret is not None:
        headers["authorization"] = f"Bearer {secret}"
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, body=content, headers=headers)
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text.startswith(b"{") else text.decode()


def test_access_token_for_predictions_permits_sending_predictions_and_nothing_else(project, annotator):
    secret = annotator("tokens", "make", "project", "tagger", "--for", "predictions").stdout.strip()
    db = Database(project)
    assert secret not in str(db.tuples("SELECT * FROM access_token")) and len(secret) > 40
    assert secret not in annotator("tokens", "project").stdout
    hashes = dict(db.tuples("SELECT name, sha256 FROM image"))
    images = [
        {"image": "00.jpg", "scores": {"fox": 0.75, "heron": 0.5}},
        {"sha256": hashes["01.jpg"], "scores": {"fox": 0.25}},
        {"image": "nobody.jpg", "scores": {"fox": 1.0}},
    ]
    body = {"name": "tagger-9", "images": images}
    with serving(project) as served:
        assert send(served, body, secret) == (200, {"images": 2, "unknown_images": 1, "version": 1})
        more = {"name": "tagger-9", "images": [{"image": "02.jpg", "scores": {"deer": 0.125}}]}
        assert send(served, more, secret)[1]["version"] == 2
        (source,) = prediction_sources.load_sources(db)
        assert (source.images, source.cells, source.annotator) == (3, 4, "token tagger")
        found: dict = {"ADDRESS": f"http://127.0.0.1:{served.port}", "TOKEN": secret}
        exec(compile(RECIPE, "docs/taggers.md", "exec"), found)
        of_recipe = found["send"]("recipe", {"00.jpg": {"fox": 0.5, "no class": 1.0}, "nobody.jpg": {"fox": 0.5}})
        assert (of_recipe["images"], of_recipe["unknown_images"]) == (1, 1)
        prediction_sources.remove_source(db, "recipe")
        for bad in (
            {"name": "tagger-9", "images": [{"image": "00.jpg", "scores": {"fox": 1.5}}]},
            {"name": "tagger-9", "images": [{"image": "00.jpg", "scores": {"wolf": 0.5}}]},
            {"name": "tagger-9", "scale": "score", "images": images},
        ):
            assert send(served, bad, secret)[0] == 409, bad
        for bad in (
            b"{half",
            {"name": "x", "images": []},
            {"name": "x", "images": [{"scores": {"fox": 1}}]},
            {"name": "x", "images": [{"image": "00.jpg", "sha256": "../../x", "scores": {}}]},
            {"name": "x", "images": [{"image": "00.jpg", "scores": {"fox": 0.5}}] * 5001},
            b" " * 1_000_001,
        ):
            assert send(served, bad, secret)[0] == 400, bad[:80] if isinstance(bad, bytes) else str(bad)[:80]
        # Nothing but a valid token counts here: not a wrong or missing one, not a browser's cookie and pass.
        assert send(served, body)[0] == 401 and send(served, body, secret[:-1] + "!")[0] == 401
        assert send(served, body, cookie=served.headers["cookie"], **{"x-annotator-token": served.token})[0] == 401
        for origin in (served.address, "http://evil.example"):
            status, said = send(served, body, secret, origin=origin)
            assert status == 403, said
        assert send(served, body, secret, host="evil.example")[0] == 403
        # And the token opens no other door.
        for path in ("/api/work", "/api/decisions", "/api/predictions/more"):
            status, _ = send(served, {"decisions": []}, secret, path=path)
            assert status in (401, 403), path
        for method in ("GET", "PUT"):
            status, said = send(served, b"", secret, method=method)
            assert (status, said["error"]) == (405, f"Send predictions with POST, not with {method}.")
        annotator("tokens", "revoke", "project", "tagger")
        status, said = send(served, body, secret)
        assert status == 401 and "valid token" in said["error"]
        assert prediction_sources.find(db, "tagger-9").version == 2
    assert access_tokens.load_tokens(db)[0].used_at and access_tokens.load_tokens(db)[0].revoked_at
