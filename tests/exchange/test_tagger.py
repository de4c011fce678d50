"""annotator tag: a model on a server is asked about every image, and what it says is predictions, never answers."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness.page_scripts import SCRIPT, fine, shown, words
from harness.served import until
from harness.tagger_server import COLORS, Model, served_model
from PIL import Image
from streamlit.testing.v1 import AppTest

from annotator.errors import AnnotatorError
from annotator.exchange import project_setup
from annotator.exchange.tagging import tagging_run
from annotator.exchange.tagging.allowed_taggers import AllowedTaggers, Tagger, parse_taggers
from annotator.exchange.tagging.chat_server import ChatServer, RequestRefusedError, ServerBusyError
from annotator.exchange.tagging.questions import ClassGroup, parse_answer
from annotator.exchange.tagging.tagging_run import TaggingOptions, tag_images
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, project_counts
from annotator.store.runs import prediction_sources, tagging_state
from annotator.store.runs.source_record import load_source_records
from annotator.store.runs.tagging_state import TaggingRequest
from annotator.ui.access import served_project
from annotator.ui.access.serving_modes import build_local_access
from annotator.worker.duties.tagger_starter import TaggerStarter
from annotator.worker.features.worker_context import WorkerContext

CLASSES = ("red thing", "green thing", "blue thing", "dark red or black")


@pytest.fixture
def model() -> Iterator[tuple[str, Model]]:
    with served_model() as found:
        yield found


@pytest.fixture
def colored(tmp_path: Path) -> Database:
    """A project of twelve pictures, each of one colour."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(12):
        name = ("red", "green", "blue")[number % 3]
        pixels = np.full((40, 60, 3), COLORS[name], np.uint8)
        pixels[0, 0] = number  # so that no two are the same content
        Image.fromarray(pixels).save(folder / f"{number}-{name}.png")
    project_setup.set_up_project(tmp_path / "project", images_folder=folder, class_text="\n".join(CLASSES))
    return Database(tmp_path / "project")


def scores(db: Database, name: str = "seer") -> dict[str, list[float]]:
    """Name of an image -> its scores, in the order of CLASSES; nan where the source says nothing."""
    [source] = [one for one in prediction_sources.open_scores(db) if one.source.name == name]
    ids = images.load_ids_by_name(db)
    found = prediction_sources.load_aligned_scores(db, source, np.array(list(ids.values())), [1, 2, 3, 4]).astype(float)
    return dict(zip(ids, np.round(found, 3).tolist(), strict=True))


def options(**changed) -> TaggingOptions:
    return TaggingOptions(**({"model": "seer", "name": "seer"} | changed))


def test_tagger_stores_predictions_for_every_image_and_no_labels(colored, model):
    url, seer = model
    done = tag_images(colored, ChatServer(url), options(), "ann")
    assert (done.images, done.without, done.error) == (12, 0, "")
    for name, found in scores(colored).items():
        colour = name.removesuffix(".png").partition("-")[2]
        assert found == [0.9 if colour in class_name else 0.1 for class_name in CLASSES], name
    assert project_counts.count_labels_by_state(colored)["present"] == 0
    sent = seer.asked[0]
    assert sent["response_format"]["json_schema"]["schema"]["required"] == list(CLASSES)
    assert tagging_state.get_running(colored) is None


def test_second_tagger_run_asks_only_about_new_images_and_classes(colored, model, tmp_path):
    url, seer = model
    tag_images(colored, ChatServer(url), options(limit=5), "ann")
    assert len(seer.asked) == 5
    done = tag_images(colored, ChatServer(url), options(), "ann")
    assert (done.images, done.had, len(seer.asked)) == (7, 5, 12)
    project_setup.set_up_project(colored.paths.project, images_folder=None, class_text="yellow thing")
    # the new class is in a question of its own
    tag_images(colored, ChatServer(url), options(classes_per_question=4), "ann")
    assert len(seer.asked) == 24
    assert all("yellow thing" in asked["messages"][1]["content"][0]["text"] for asked in seer.asked[12:])
    tag_images(colored, ChatServer(url), options(limit=2, include_scored=True), "ann")
    assert len(seer.asked) == 26


def test_tagger_converts_token_log_probabilities_to_probabilities(colored, model):
    url, seer = model
    seer.tokens = True
    tag_images(colored, ChatServer(url), options(), "ann")
    found = scores(colored)
    assert found["0-red.png"] == [0.7, 0.2, 0.2, 0.7] and found["1-green.png"] == [0.2, 0.7, 0.2, 0.2]


@pytest.mark.parametrize("refuses", [("logprobs",), ("json_schema", "logprobs"), ("response_format", "logprobs")])
def test_tagger_sends_simpler_requests_to_servers_that_refuse_options(colored, model, refuses):
    url, seer = model
    seer.refuses = refuses
    done = tag_images(colored, ChatServer(url), options(limit=3), "ann")
    assert done.images == 3
    [form] = {asked.get("response_format", {}).get("type", "") for asked in seer.asked}
    assert form == {1: "json_schema", 2: "json_object"}.get(len(refuses) if "json_schema" in refuses else 1 + 2 * (
        "response_format" in refuses), "")  # fmt: skip


def test_tagger_retries_invalid_answers_and_stores_no_guess(colored, model):
    url, seer = model
    wrong = [
        "It is a nice picture.",
        '{"red thing": "ye',
        '{"a unicorn": "yes"}',
        '{"red thing": 7, "green thing": null}',
    ]
    seer.does = lambda number: wrong[number % 5] if number % 5 < 4 else None
    done = tag_images(colored, ChatServer(url), options(jobs=1, limit=6), "ann")
    repeated = [asked for asked in seer.asked if len(asked["messages"]) == 4]
    assert repeated and "no answer" in repeated[0]["messages"][3]["content"]
    assert done.images + done.without == 6 and done.without > 0
    for found in scores(colored).values():
        assert all(np.isnan(value) or value in (0.1, 0.9) for value in found)  # nothing is guessed


def test_tagger_retries_after_http_errors_and_cut_connections(colored, model):
    url, seer = model
    wrong = [429, 503, "cut", 500]
    seer.does = lambda number: wrong[number] if number < 4 else None
    done = tag_images(colored, ChatServer(url), options(jobs=1), "ann")
    assert (done.images, done.without) == (12, 0)


def test_tagger_stops_after_repeated_timeouts_and_keeps_received_predictions(colored, model, monkeypatch):
    url, seer = model
    monkeypatch.setattr(tagging_run, "MAX_TRIES", 1)
    monkeypatch.setattr(tagging_run, "MAX_FAILURES_IN_A_ROW", 3)
    seer.does = lambda number: "stall" if number >= 4 else None
    done = tag_images(colored, ChatServer(url, timeout=0.3), options(jobs=1), "ann")
    assert (
        done.images == 4 and "images in a row stayed without an answer" in done.error and "within 0.3 s" in done.error
    )
    assert sum(not np.isnan(found[0]) for found in scores(colored).values()) == 4
    seer.does = lambda number: None
    assert tag_images(colored, ChatServer(url), options(), "ann").images == 8


@pytest.mark.slow
def test_unusable_server_or_model_raises_one_error_and_stores_nothing(colored, model):
    url, seer = model
    for asked, changed, said in (
        ("http://127.0.0.1:9/v1", {}, "Is the server running"),
        (url, {"model": "sere"}, "no model 'sere'. Did you mean 'seer'"),
        ("ftp://x/v1", {}, "no address of a server"),
        ("http://me:secret@127.0.0.1:9/v1", {}, "no address of a server"),
    ):
        with pytest.raises(AnnotatorError, match=said.replace("(", ".")) as error:
            tag_images(colored, ChatServer(asked), options(**changed), "ann")
        assert "secret" not in str(error.value)
    seer.key = "k-1"
    with pytest.raises(AnnotatorError, match="--key-from"):
        tag_images(colored, ChatServer(url), options(), "ann")
    assert tag_images(colored, ChatServer(url, "k-1"), options(limit=1), "ann").images == 1
    seer.key, seer.sees = "", False
    with pytest.raises(AnnotatorError, match="does not seem to see images"):
        tag_images(colored, ChatServer(url), options(name="blind"), "ann")
    assert [source.name for source in prediction_sources.load_sources(colored)] == ["seer"]


def test_tagger_sends_images_to_remote_servers_only_with_consent(colored, annotator):
    words = ("tag", colored.paths.project, "--model", "seer", "--url")
    assert "images would leave it" in annotator(*words, "http://192.0.2.1:9/v1", code=1).stderr
    assert "no variable MY_KEY" in annotator(*words, "http://127.0.0.1:9/v1", "--key-from", "MY_KEY", code=1).stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANNOTATOR_TAGGER_KEY", "k-2")
        told = annotator(*words, "http://192.0.2.1:9/v1", "--images-may-leave", code=1).stderr
    assert "not encrypted" in told and "k-2" not in told
    for here in ("http://127.0.0.1/v1", "http://localhost:1/v1", "http://[::1]:1/v1"):
        assert ChatServer(here).is_local
    for elsewhere in ("http://127.0.0.1.example.org/v1", "https://localhost.example.org/v1", "http://10.0.0.1/v1"):
        assert not ChatServer(elsewhere).is_local


def test_second_tagger_on_one_project_is_refused(colored, model):
    url, seer = model
    go_on = threading.Event()
    seer.does = lambda number: go_on.wait(20) and None
    first = threading.Thread(target=tag_images, args=(colored, ChatServer(url), options(), "ann"))
    first.start()
    until(lambda: seer.asked)
    with pytest.raises(AnnotatorError, match="Another tagger"):
        tag_images(colored, ChatServer(url), options(name="two"), "ann")
    go_on.set()
    first.join()
    assert len(scores(colored)) == 12


@pytest.mark.process
def test_killed_tagger_resumes_without_losing_or_repeating_predictions(colored, model):
    url, seer = model
    seer.does = lambda number: time.sleep(0.05)
    words = [sys.executable, "-P", "-c", "from annotator.exchange.tagging import tagging_run as t\nt.FLUSH_SECONDS = "
             "t.FLUSH_REST_FACTOR = 0.01\nimport sys; sys.argv[0] = 'annotator'; from annotator.__main__ import main; "
             "main()",
             "tag", str(colored.paths.project), "--url", url, "--model", "seer", "--jobs", "1"]  # fmt: skip
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: any(source.images >= 3 for source in prediction_sources.load_sources(colored)), 60)
    process.kill()
    process.wait()
    before = {name: found for name, found in scores(colored).items() if not np.isnan(found[0])}
    asked, seer.does = len(seer.asked), lambda number: None
    done = tag_images(colored, ChatServer(url), options(), "ann")  # although the killed one has left its claim
    assert done.had == len(before) >= 3 and done.images == 12 - done.had and len(seer.asked) - asked == done.images
    after = scores(colored)
    assert all(after[name] == found for name, found in before.items()) and not np.isnan(list(after.values())).any()


@pytest.mark.slow
@pytest.mark.process
def test_ctrl_c_keeps_the_received_predictions_and_prints_how_to_resume(colored, model):
    url, seer = model
    seer.does = lambda number: "stall" if number >= 3 else None  # for half a minute, which is not waited for
    words = [
        sys.executable,
        "-P",
        "-m",
        "annotator",
        "tag",
        str(colored.paths.project),
        "--url",
        url,
        "--model",
        "seer",
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: len(seer.asked) >= 4, 60)
    os.kill(process.pid, signal.SIGINT)
    printed, told = process.communicate(timeout=20)
    assert process.returncode == 130, told
    assert "goes on from there" in printed
    assert sum(not np.isnan(found[0]) for found in scores(colored).values()) >= 2


@pytest.mark.slow
def test_tagger_asks_about_ten_thousand_classes_in_groups(model, tmp_path):
    url, seer = model
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (30, 30), COLORS["blue"]).save(tmp_path / "photos" / "a.png")
    names = [f"class {number}" for number in range(9999)] + ["blue thing"]
    project_setup.set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", class_text="\n".join(names))
    db = Database(tmp_path / "project")
    done = tag_images(db, ChatServer(url), options(classes_per_question=1000), "ann")
    assert (done.images, len(seer.asked)) == (1, 10)
    [source] = prediction_sources.load_sources(db)
    assert source.cells == 10_000


QUESTION = {"model": "seer", "messages": [{}, {"content": [{"text": "Which?"}]}]}


@pytest.mark.parametrize("drip", ["drip body", "drip headers"])
def test_timeout_limits_the_whole_answer_of_a_server_that_drips_bytes(model, drip):
    url, seer = model
    seer.does = lambda number: drip
    with pytest.raises(ServerBusyError, match=r"not complete within 0\.5 s"):
        ChatServer(url, timeout=0.5).ask(QUESTION)


def test_timeout_limits_a_tls_handshake_that_drips_bytes():
    def drip() -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"\x16\x03\x03\x40\x00")  # the head of a record of 16 KB
            for _ in range(200):
                connection.sendall(b"\0")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(ServerBusyError, match=r"not complete within 0\.5 s"):
            ChatServer(f"https://127.0.0.1:{listening.getsockname()[1]}/v1", timeout=0.5).ask(QUESTION)
        thread.join()


@pytest.mark.process
def test_ctrl_c_ends_a_tagger_that_still_waits_for_the_answer_about_a_colour(colored, model, processes):
    url, seer = model
    seer.colors = "drip body"
    words = ["tag", str(colored.paths.project), "--url", url, "--model", "seer"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "annotator", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    processes.append(process)
    until(lambda: seer.color_requests, 60)
    os.kill(process.pid, signal.SIGINT)
    printed, told = process.communicate(timeout=20)
    assert process.returncode == 130 and "goes on from there" in printed, told


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[" * 240_000, "not JSON"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, "not a chat completion"),
        (b'{"choices": [[]]}', "not a chat completion"),
        (b'{"choices": "no"}', "not a chat completion"),
        (b'{"error": ' + b"[" * 900 + b"]" * 900 + b"}", "not a chat completion"),
        (b"7", "no JSON object"),
        (b"\xff\xfe\x00", "not JSON"),
    ],
)
def test_answer_that_is_no_chat_completion_is_refused_with_a_reason(model, body, said):
    url, seer = model
    seer.does = lambda number: body
    with pytest.raises(RequestRefusedError, match=said) as refused:
        ChatServer(url).ask(QUESTION)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("pause", ["nan", "-1", "soon", "1e999"])
def test_tagger_retries_after_any_retry_after_header(model, pause):
    url, seer = model
    seer.does, seer.retry_after = lambda number: 503, pause
    with pytest.raises(ServerBusyError) as busy:
        ChatServer(url).ask(QUESTION)
    assert 0 <= busy.value.after <= 60


GROUP = ClassGroup((7, 8, 9), ("fox", "Red Kite", 'a "b"'), ("", "", ""))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"fox": "yes", "Red Kite": "no", "a \\"b\\"": "unsure"}', {7: 0.9, 8: 0.1, 9: 0.5}),
        ('Sure!\n```json\n{"fox": true, "red kite": 0.25}\n```', {7: 0.9, 8: 0.25}),
        ('{"answers": {"fox": "Yes "}}', {7: 0.9}),
        ('{"fox": 1.5, "Red Kite": "maybe", "wolf": "yes"}', {}),
        ('{"fox": NaN}', {}),
        ("[" * 5000, {}),
        ("{" * 5000, {}),
        ('{"fox": 1' + "0" * 400 + ', "Red Kite": 1}', {8: 1.0}),
        ("", {}),
    ],
)  # fmt: skip
def test_parse_answer_returns_only_valid_class_probabilities(text, found):
    assert parse_answer(text, GROUP) == found


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ['{"a":' * 48_000, '{"a":{"b":[' * 22_000, '{"fox": "yes"} ' + '{"a":' * 48_000])
def test_parse_answer_bounds_its_work_on_deeply_nested_text(text):
    assert parse_answer(text, GROUP) == ({7: 0.9} if "fox" in text else {})


@pytest.mark.timeout(20)
def test_parse_answer_bounds_its_work_on_one_class_named_2500_times():
    names = [f"{' ' * (number % 50)}fox{' ' * (number // 50)}" for number in range(2500)]
    text = json.dumps(dict.fromkeys(names, "yes"))
    tokens = [{"token": ""}] * 200_000 + [{"token": letter} for letter in text]
    assert parse_answer(text, GROUP, tokens) == {7: 0.9}


NO = [{"token": "y", "logprob": -0.1}, {"token": "n", "logprob": -3.0}]  # a list that counts: yes with 0.948


@pytest.mark.parametrize(
    "value",
    [
        {"token": "yes"},
        {"token": None, "top_logprobs": NO},
        {"token": 7, "top_logprobs": NO},
        {"token": "yes", "top_logprobs": None},
        {"token": "yes", "top_logprobs": 5},
        {"token": "yes", "top_logprobs": "abc"},
        {"token": "yes", "top_logprobs": {"y": -0.1}},
        {"token": "yes", "top_logprobs": [None, 3, "y", []]},
        {"token": "yes", "top_logprobs": [{"token": "y", "logprob": "-0.1"}, {"token": 3, "logprob": -0.1}]},
        {"token": "yes", "top_logprobs": [{"token": "y", "logprob": float("nan")}]},
        {"token": "yes", "top_logprobs": [{"token": "y", "logprob": None}, {"token": "n", "logprob": True}]},
        {"token": "yes", "top_logprobs": [{"token": "y", "logprob": -(10**400)}, {"token": "n", "logprob": 10**400}]},
        {"token": "yes", "top_logprobs": [{"token": "y", "logprob": float("-inf")}, {"logprob": -0.1}]},
    ],
)
def test_parse_answer_ignores_log_probabilities_of_odd_types(value):
    text = '{"fox": "yes"}'
    assert parse_answer(text, GROUP, [{"token": '{"fox": "'}, value, {"token": '"}'}]) == {7: 0.9}


@pytest.mark.parametrize(
    "odd", [None, 3, "none", [], {"content": 4}, {"content": [None]}, {"content": [{"token": []}]}]
)
def test_chat_server_returns_the_text_of_an_answer_with_odd_log_probabilities(model, odd):
    url, seer = model
    seer.does = lambda number: {"choices": [{"message": {"content": '{"fox": "no"}'}, "logprobs": odd}]}
    answer = ChatServer(url).ask(QUESTION)
    assert parse_answer(answer["text"], GROUP, answer["tokens"]) == {7: 0.1}


def test_tagging_request_and_result_are_stored_and_an_invalid_request_is_ignored(colored):
    tagging_state.set_request(colored, TaggingRequest("http://127.0.0.1:1/v1", "seer", False, "ann"))
    assert tagging_state.get_request(colored) == TaggingRequest("http://127.0.0.1:1/v1", "seer", False, "ann")
    colored.set_setting("tagging_wanted", {"url": 3})
    assert tagging_state.get_request(colored) is None
    tagging_state.set_result(colored, {"error": "", "images": 3})
    assert tagging_state.get_result(colored)["images"] == 3
    assert json.dumps(tagging_state.get_result(colored))


def test_error_messages_of_a_server_that_repeats_the_key_show_stars_in_place_of_it(colored, model, monkeypatch):
    url, seer = model
    key = 'sk-"7/\\x'
    monkeypatch.setattr(tagging_run, "MAX_TRIES", 1)
    monkeypatch.setattr(tagging_run, "MAX_FAILURES_IN_A_ROW", 2)
    server = ChatServer(url, key)
    for said in (
        json.dumps({"error": {"message": f"the key {key} has no credit"}}),
        json.dumps({"error": {"message": f"the key {key} has no credit"}}).replace("sk-", "\\u0073k-"),
        json.dumps({"error": {"headers": {"authorization": f"Bearer {key}"}}}),
        f"<html>Authorization: Bearer {key}</html>",
        f"{'x' * 295} {key}",
    ):
        seer.does = lambda number, said=said: (403, said)
        error = tag_images(colored, server, options(jobs=1), "ann").error
        tagging_state.set_result(colored, {"error": error})
        assert "it answers 403" in error and "sk-" not in error and json.dumps(key)[1:-1] not in error, said
    seer.does = lambda number: f"raw HTTP/9 {key}"
    error = tag_images(colored, server, options(jobs=1), "ann").error
    assert "the connection failed" in error and "***" in error and key not in error
    seer.names = [f"seer {key}"]
    with pytest.raises(AnnotatorError, match=r"seer \*\*\*"):
        tag_images(colored, server, options(model="sere"), "ann")
    stored = b"".join(path.read_bytes() for path in colored.paths.project.glob("project.db*"))
    assert b"it answers 403" in stored and b"sk-" not in stored


@pytest.mark.parametrize("key", ["sk-7\n", "sk-7\r\nX-Evil: 1", "sk 7", "sk-\u00e9", "sk-\u2026"])
def test_key_that_a_header_cannot_carry_is_refused_without_being_shown(key):
    with pytest.raises(AnnotatorError, match="Correct the environment variable") as error:
        ChatServer("http://127.0.0.1:1/v1", key)
    assert "sk" not in str(error.value)


LISTED = "https://api.example.com/v1"


@pytest.mark.parametrize(
    ("options", "environment", "found"),
    [
        ([], {"ANNOTATOR_TAGGER_KEY": "k"}, []),
        ([LISTED], {}, [(LISTED, "")]),
        ([LISTED], {"ANNOTATOR_TAGGER_KEY": "k"}, [(LISTED, "ANNOTATOR_TAGGER_KEY")]),
        ([f"MY_KEY={LISTED}"], {"MY_KEY": "m", "ANNOTATOR_TAGGER_KEY": "k"}, [(LISTED, "MY_KEY")]),
        (
            [f"ANNOTATOR_TAGGER_KEY={LISTED}", "http://10.0.0.5/v1"],
            {"ANNOTATOR_TAGGER_KEY": "k"},
            [(LISTED, "ANNOTATOR_TAGGER_KEY"), ("http://10.0.0.5/v1", "")],
        ),
        ([LISTED, "http://10.0.0.5/v1"], {}, [(LISTED, ""), ("http://10.0.0.5/v1", "")]),
        ([LISTED, "http://10.0.0.5/v1"], {"ANNOTATOR_TAGGER_KEY": "k"}, "belongs to one server"),
        ([f"MY_KEY={LISTED}"], {}, "no variable MY_KEY"),
        (["http://10.0.0.5/v1"], {"ANNOTATOR_TAGGER_KEY": "k"}, "not encrypted"),
        ([LISTED, f"{LISTED}/"], {}, "given twice"),
        (["ftp://x/v1"], {}, "no address of a server"),
        (["http://me:secret@127.0.0.1:9/v1"], {}, "no address of a server"),
        (["MY KEY=https://x/v1"], {}, "no address of a server"),
    ],
)
def test_tagger_url_options_give_each_key_to_one_server(options, environment, found):
    problems: list[str] = []
    taggers = parse_taggers(options, environment, problems)
    if isinstance(found, str):
        assert len(problems) == 1 and found in problems[0] and "secret" not in problems[0]
        return
    assert problems == [] and [(tagger.url, tagger.key_variable) for tagger in taggers] == found
    again = parse_taggers(AllowedTaggers(taggers).options, environment, problems)
    assert (again, problems) == (taggers, []), "the worker gets the same list"


def test_pages_may_choose_listed_taggers_and_on_a_personal_server_those_of_this_machine():
    listed = (Tagger(LISTED, "MY_KEY"),)
    personal, of_team = AllowedTaggers(listed), AllowedTaggers(listed, are_all_listed=True)
    for allowed in (personal, of_team):
        for url in (LISTED, f"{LISTED}/", "HTTPS://API.example.com:443/v1"):
            assert allowed.find(url) == listed[0]
        for url in (
            "http://api.example.com/v1",
            "https://api.example.com:444/v1",
            "https://api.example.com/v2",
            "https://api.example.com/v1/../v2",
            "https://api.example.com.evil.example/v1",
            "http://10.0.0.5/v1",
            "http://169.254.169.254/latest",
            "http://127.0.0.1.evil.example/v1",
        ):
            with pytest.raises(AnnotatorError, match=r"not an allowed tagger.*--tagger-url"):
                allowed.find(url)
    for url in ("http://127.0.0.1:11434/v1", "http://localhost:8000/v1", "http://[::1]/v1"):
        assert personal.find(url) == Tagger(url)
        with pytest.raises(AnnotatorError, match="not an allowed tagger"):
            of_team.find(url)


@pytest.mark.process
@pytest.mark.parametrize("is_listed", [True, False], ids=["listed", "typed"])
def test_worker_sends_the_tagger_key_to_its_own_server_only(colored, model, monkeypatch, is_listed):
    url, seer = model
    monkeypatch.setenv("ANNOTATOR_TAGGER_KEY", "sk-7")
    problems: list[str] = []
    listed = parse_taggers([url if is_listed else LISTED], os.environ, problems)
    tagging_state.set_request(colored, TaggingRequest(url, "seer", False, "Ann"))
    starter = TaggerStarter(WorkerContext(colored), AllowedTaggers(listed))
    try:
        until(lambda: starter.start_if_requested() or tagging_state.get_request(colored) is None, 60)
    finally:
        starter.stop_process()
    assert problems == [] and tagging_state.get_result(colored)["error"] == ""
    sent = {headers.get("Authorization") for headers in seer.headers}
    assert sent == ({"Bearer sk-7"} if is_listed else {None})
    assert [source.annotator for source in prediction_sources.load_sources(colored)] == ["Ann"]


@pytest.mark.parametrize("may_leave", [True, False])
def test_worker_of_a_team_asks_no_tagger_that_is_not_listed(colored, model, may_leave):
    url, seer = model
    tagging_state.set_request(colored, TaggingRequest(url, "seer", may_leave, "Ann"))
    starter = TaggerStarter(WorkerContext(colored), AllowedTaggers((Tagger(LISTED),), are_all_listed=True))
    starter.start_if_requested()
    assert tagging_state.get_request(colored) is None
    assert f"{url} is not an allowed tagger" in tagging_state.get_result(colored)["error"]
    assert seer.asked == [] and tagging_state.get_running(colored) is None


@pytest.mark.slow
@pytest.mark.process
def test_settings_page_requests_tagging_and_the_worker_starts_it(colored, model):
    url, _ = model
    test = shown(colored, "settings")
    test.text_input(key="tagger_url").set_value("http://192.0.2.1/v1")
    fine(test.text_input(key="tagger_model").set_value("seer").run())
    fine(test.button(key="tagger_start").click().run())
    assert "is not an allowed tagger. Allowed: servers of this machine." in words(test)
    assert tagging_state.get_request(colored) is None
    fine(test.text_input(key="tagger_url").set_value(url).run())
    fine(test.button(key="tagger_start").click().run())
    assert "Waiting for the worker" in words(test)
    starter = TaggerStarter(WorkerContext(colored))
    try:
        until(lambda: starter.start_if_requested() or tagging_state.get_request(colored) is None, 60)
    finally:
        starter.stop_process()
    assert tagging_state.get_result(colored)["images"] == 12 and tagging_state.get_result(colored)["error"] == ""
    assert scores(colored)["0-red.png"][0] == 0.9
    assert "The last time seer said something of 12 images" in words(fine(shown(colored, "settings")))


@pytest.mark.slow
def test_settings_page_asks_before_images_leave_to_a_listed_tagger(colored):
    access = replace(build_local_access(1), listed_taggers=(Tagger(LISTED),))
    served_project.open_project(colored.paths.project)
    served_project.configure_access(access)
    try:
        test = AppTest.from_string(SCRIPT.format("settings"), default_timeout=120)
        test.session_state["name"] = "Ann"
        fine(test.run())
        assert test.text_input(key="tagger_url").value == LISTED
        fine(test.text_input(key="tagger_model").set_value("seer").run())
        fine(test.button(key="tagger_start").click().run())
        assert "Images would leave this machine" in words(test) and tagging_state.get_request(colored) is None
        fine(test.checkbox(key="tagger_leave").check().run())
        fine(test.button(key="tagger_start").click().run())
        assert tagging_state.get_request(colored) == TaggingRequest(LISTED, "seer", True, "Ann")
    finally:
        served_project._configured_access.clear()


@pytest.mark.slow
@pytest.mark.process
def test_stop_on_the_settings_page_ends_the_tagger_and_keeps_its_predictions(colored, model):
    url, seer = model
    go_on = threading.Event()  # however long the page takes, images are left to ask about
    seer.does = lambda number: None if number < 3 or go_on.wait(60) else "stall"
    tagging_state.set_request(colored, TaggingRequest(url, "seer", False, "ann"))
    starter = TaggerStarter(WorkerContext(colored))
    try:
        until(lambda: starter.start_if_requested() or len(seer.asked) >= 5, 60)
        test = shown(colored, "settings")
        assert "of 12 images" in test.get("progress")[0].proto.text
        fine(test.button(key="tagger_stop").click().run())
        until(lambda: tagging_state.get_running(colored) is None, 60)
    finally:
        go_on.set()
        starter.stop_process()
    assert tagging_state.get_request(colored) is None and len(seer.asked) < 12
    assert 2 <= sum(not np.isnan(found[0]) for found in scores(colored).values()) < 12


def test_settings_page_shows_how_often_tagger_predictions_were_correct(colored, model):
    url, seer = model
    seer.does = lambda number: json.dumps(dict.fromkeys(CLASSES, "yes"))  # which is wrong for most
    tag_images(colored, ChatServer(url), options(), "ann")
    ids = images.load_ids_by_name(colored)
    for number, (name, image_id) in enumerate(ids.items()):
        state = 1 if "-red" in name else -1
        for class_id, source in ((1, "grid"), (2, "click")):  # a click is chosen by its answer
            decisions.save(colored, [Decision(uuid=f"d{number}-{class_id}", action="label", image_id=image_id,
                class_id=class_id, state=state, source=source, annotator="ann")])  # fmt: skip
    [record] = load_source_records(colored)
    assert (record.said_present, record.present_right, record.said_absent) == (12, 4, 0)
    [table] = [one for one in shown(colored, "settings").get("html") if "Said present" in one.proto.body]
    assert "33 % of 12" in table.proto.body
