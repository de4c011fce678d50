"""The Streamlit side of the pages, without a browser: what there is, and what to do when there is nothing."""

import uuid
from dataclasses import replace

import pytest
from harness.short_forms import mark_slow_after
from streamlit.testing.v1 import AppTest

from annotator.queues import query_order
from annotator.records import Decision
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.networks import adaptation, configuration
from annotator.ui.access import served_project, serving_modes
from annotator.ui.shared import navigation
from annotator.ui.shared.markdown_text import escape_markdown
from spmll import catalog

SCRIPT = """
from annotator.ui.shared.message_boxes import show_errors
from importlib import import_module
from annotator.ui.shared.navigation import find_page_module
one = import_module(find_page_module("{name}"))
with show_errors():
    one.page()
"""


@pytest.fixture
def show(project):
    """Runs a page of the project for somebody called Ann."""
    served_project.open_project(project)

    def run(name: str, annotator: str = "Ann") -> AppTest:
        test = AppTest.from_string(SCRIPT.format(name=name), default_timeout=120)
        test.session_state["name"] = annotator
        return test.run()

    return run


@pytest.mark.parametrize("name", mark_slow_after(6, [page.name for page in navigation.PAGES]))
def test_every_page_of_a_new_project_shows_no_error(show, name):
    test = show(name)
    assert not test.exception and not test.error


@pytest.mark.parametrize(
    "name", mark_slow_after(1, ["assignment", "certificate", "export", "map", "progress", "review"])
)
def test_pages_link_to_images_or_classes_when_the_project_has_none(show, db, tmp_path, name):
    with db.writing() as sql:
        sql.execute("DELETE FROM class")
    links = [link.proto.page for link in show(name).page_link]
    assert links == ([] if name in ("assignment", "map") else ["classes"])
    served_project.open_project(Database(tmp_path / "empty", create=True).paths.project)
    [link] = show(name).page_link
    assert link.proto.page == "images"


def test_settings_page_shows_method_parameters_in_a_section_for_experts(show):
    [folded] = [one for one in show("settings").expander if one.label == "For experts"]
    assert any("Parameters" in text.value for text in folded.markdown)


@pytest.mark.slow
def test_progress_page_of_an_unlabeled_project_suggests_next_steps(show):
    texts = [info.value for info in show("progress").info]
    assert any("Start with Autopilot" in text for text in texts)
    assert any("Review shows them" in text for text in texts)


def test_progress_page_counts_labeled_images_and_present_labels(show, db):
    decisions.save(db, [Decision(str(uuid.uuid4()), "label", "Ann", "click", image_id=1, class_id=1, state=1)])
    metrics = {metric.label: metric.value for metric in show("progress").metric}
    assert metrics["Labeled images"] == "1 of 24"
    assert metrics["Present"] == "1"


def test_settings_page_changes_the_method_and_requests_a_training(show, db):
    test = show("settings")
    test.selectbox(key="method").select("em_apl").run()
    assert configuration.get_method(db) == "em_apl"
    assert jobs.is_training_requested(db)


@pytest.mark.slow
def test_settings_page_keeps_and_shows_settings_changed_by_another_owner(show, db):
    test = show("settings")
    configuration.set_method(db, "em_apl")
    query_order.set_default(db, "uncertainty")
    next(button for button in test.button if button.label == "Train now").click().run()
    assert configuration.get_method(db) == test.selectbox(key="method").value == "em_apl"
    assert query_order.get_default_name(db) == test.selectbox(key="order").value == "uncertainty"


@pytest.mark.slow
def test_settings_page_lists_every_project_method_and_shows_its_parameters(show, db):
    configuration.set_method(db, "role+linear_init", {"k": 2.5})
    test = show("settings")
    box = test.selectbox(key="method")
    assert box.value == "role+linear_init" and len(box.options) == sum(
        one.is_for_projects for one in catalog.load_methods().values()
    )
    assert any(f"**{escape_markdown('k = 2.5')}**" in text.value for text in test.markdown)
    box.select("lagc").run()
    assert any("Needs feature maps" in caption.value for caption in test.caption)
    box.select("em_apl").run()
    assert configuration.get_parameters(db) == {} and not any("Needs" in caption.value for caption in test.caption)
    box.select("vlpl").run()
    (refused,) = test.error
    assert "knows no texts" in refused.value and "Until then trainings use em" in refused.value
    assert configuration.get_method(db) == test.selectbox(key="method").value == "em_apl", "what is in use is shown"
    assert any(escape_markdown("alpha = 0.2") in text.value for text in test.markdown)


@pytest.mark.slow
def test_settings_page_estimates_starts_and_pauses_backbone_adaptation(show, db):
    test = show("settings")
    test.button(key="adapt_estimate").click().run()
    assert adaptation.get_request(db) == "estimate"
    adaptation.set_request(db, "")
    adaptation.set_result(db, {"kind": "error", "error": "Complete some more images."})
    test = show("settings")
    assert [warning.value for warning in test.warning] == [escape_markdown("Complete some more images.")]
    test.button(key="adapt_run").click().run()
    assert adaptation.get_request(db) == "run"
    state = adaptation.claim(db, "local")
    adaptation.report(db, replace(state, doing="training", done=1, of=4, seconds_left=180.0))
    test = show("settings")
    assert not test.warning and not test.exception
    test.button(key="adapt_pause").click().run()
    assert adaptation.get_request(db) == "pause"
    adaptation.release(db)


@pytest.mark.slow
def test_settings_page_shows_a_login_provider_file_that_serve_accepts(show, tmp_path, monkeypatch):
    monkeypatch.setattr(
        served_project,
        "_configured_access",
        [(serving_modes.parse_access("invitation", 8501, url="http://birds.lab:8501/a/"), None)],
    )
    code = [one.value for one in show("settings").code]
    assert "https://birds.lab:8501/a/oauth2callback" in code
    (written,) = [text for text in code if "client_secret" in text]
    file = tmp_path / "provider.toml"
    file.write_text(written)
    file.chmod(0o600)
    with_it = serving_modes.parse_access("oidc", 8501, url="https://birds.lab/a/", provider=file)
    assert with_it.provider and with_it.provider.keys() >= set(serving_modes.REQUIRED_PROVIDER_KEYS)


def test_settings_page_names_the_base_method_of_a_method_without_a_paper(show):
    texts = [one.value for one in show("settings").markdown]
    assert any("[This project's own (2026), built on gr: Chen et al." in text for text in texts), texts


def test_export_page_disables_model_export_without_a_model(show):
    test = show("export")
    test.radio(key="unknown").set_value("model").run()
    assert "No model yet" in test.error[0].value and test.button(key="export_start").disabled


def test_annotate_page_asks_for_the_annotator_name_when_none_is_known(project):
    served_project.open_project(project)
    test = AppTest.from_string(SCRIPT.format(name="annotate"), default_timeout=120).run()
    assert test.text_input(key="name_given").label == "Your name"


@pytest.mark.slow
def test_name_that_resembles_a_known_annotator_requires_a_choice(project, db):
    decisions.save(db, [Decision(str(uuid.uuid4()), "label", "Dana Lee", "click", image_id=1, class_id=1, state=1)])
    served_project.open_project(project)
    for given, button, name in (
        ("dana  lee", "name_twin", "Dana Lee"),
        ("danalee", "name_other", "danalee"),
        ("Dana Lee", None, "Dana Lee"),
        ("Ben", None, "Ben"),
    ):
        test = AppTest.from_string(SCRIPT.format(name="annotate"), default_timeout=120).run()
        test.text_input(key="name_given").input(given)
        test.button[0].click().run()
        assert bool(test.warning) == (button is not None), given
        if button:
            assert "name" not in test.session_state or not test.session_state["name"]
            test.button(key=button).click().run()
        assert not test.exception and test.session_state["name"] == name


@pytest.mark.slow
def test_empty_or_reserved_annotator_name_is_refused_with_a_warning(project):
    served_project.open_project(project)
    test = AppTest.from_string(SCRIPT.format(name="annotate"), default_timeout=120).run()
    test.button[0].click().run()
    assert "Type a name" in test.warning[0].value
    test.text_input(key="name_given").input("Import")
    test.button[0].click().run()
    assert (
        "import is the annotator of imported labels" in test.warning[0].value and not test.session_state["name_asked"]
    )
