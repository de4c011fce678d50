"""The Certificate page without a browser: what it says while something is lacking, and what its buttons do."""

import json
import re
import uuid

import numpy as np
import pandas as pd
import pytest
from harness.audit_answers import answer, say
from harness.auto_accept_project import answer_audit, many
from harness.in_events import in_events
from harness.page_scripts import fine, shown, words
from harness.published_runs import publish
from streamlit.testing.v1 import AppTest

from annotator.quality import audit_sampling, auto_accept, auto_accept_sample, guarantee, rule_out
from annotator.quality.certificate_records import describe_repeats
from annotator.quality.certification import compute_certificate, get_change_key
from annotator.quality.guarantee import Guarantee
from annotator.records import Batch, Decision
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import audits, auto_accepted, decisions
from annotator.ui.pages.certificate import certificate_charts
from annotator.ui.shared import chart_theme

__all__ = ["many"]  # a fixture


def table(test: AppTest) -> str:
    return next(one.proto.body for one in test.get("html") if "<table>" in one.proto.body)


def button(test: AppTest, label: str):
    return next(one for one in test.button if one.label == label)


def test_certificate_page_without_images_or_classes_states_the_next_step(tmp_path, db):
    assert "on the Images page" in words(shown(Database(tmp_path / "empty", create=True)))
    with db.writing() as sql:
        sql.execute("DELETE FROM class")
    assert "No classes yet" in words(shown(db))


def test_certificate_page_without_answers_or_audits_shows_not_measured_and_the_next_steps(db):
    told = words(shown(db))
    assert "Not measured yet. An audit tells how many labels are missing" in told
    assert "No answers yet" in told and "Start an audit" in told
    assert [one.value for one in shown(db).metric] == ["Not measured"] * 4


def test_certificate_page_starts_an_audit_and_links_to_its_grid(db):
    test = shown(db)
    assert test.number_input(key="audit_cells").value == audit_sampling.get_default_size(db)
    test.number_input(key="audit_cells").set_value(12)
    test = fine(button(test, "Start an audit").click().run())
    assert len(audit_sampling.load_open_cells(db)) == 12
    assert "12 pairs to check" in words(test)
    [link] = [link for link in test.page_link if link.proto.page == "grid"]
    assert link.proto.query_string == "audit=1"


@pytest.mark.slow
def test_certificate_page_starts_event_audits_and_shows_recall_of_events(db):
    assert "audit_events" not in {box.key for box in shown(db).checkbox}
    in_events(db, 4)
    test = shown(db)
    test.number_input(key="audit_cells").set_value(18)
    test.checkbox(key="audit_events").check()
    fine(button(test, "Start an audit").click().run())
    assert audits.load_audits(db)[0].by_event and len(audit_sampling.load_open_cells(db)) == 72, (
        "all images of six events, of each class"
    )
    answer(db)
    test = shown(db)
    assert "Of events, each counted once: 100 %" in words(test) and "24 images in 6 events" in words(test)
    assert "recall of events" in table(test)


def test_certificate_page_shows_the_full_certificate_after_an_answered_audit(db):
    say(db, [(image_id, 1) for image_id in range(1, 13)])
    audit_sampling.draw_audit(db, 60, seed=1)
    answer(db)
    test, found = shown(db), compute_certificate(db)
    for phrase in (found.headline(), found.conditions(), "Every audit question has been answered"):
        assert phrase in words(test)
    names = re.findall(r'scope="row"[^>]*>(.*?)<', table(test))
    assert names[0] == "all classes" and len(names) == 4
    missing = [next(one for one in found.classes if one.name == name).missing.estimate for name in names[1:]]
    assert missing == sorted(missing, reverse=True)


def test_certificate_page_shows_unaudited_recall_with_its_assumption(db):
    say(db, [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)])
    test = shown(db)
    assert test.metric[0].label == "Recall if 1 answer in 50 is wrong" and test.metric[0].value.endswith("% to 100 %")
    assert "up to 1 answer in 50 may be wrong" in words(test)
    assert test.metric[1].label == "Recall if people's answers are right" and test.metric[1].value == "100 %"
    assert "If people's answers are right: every pair has one, and no audit has checked them." in words(test)
    assert "None answered yet" in words(test), "no audit was answered"


def test_certificate_page_counts_an_audit_of_answered_labels(db):
    say(db, [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)])
    audit_sampling.draw_audit(db, 30, seed=1)
    answer(db)
    test, told = shown(db), describe_repeats(compute_certificate(db).relabels)
    assert "30 answers asked again, blind: of 15 present labels, 0 wrong" in told and told in words(test)
    assert "30 pairs answered so far" in words(test) and "None answered yet" not in words(test)
    assert "no audit has checked them" not in words(test) and "Start an audit:" not in words(test)


def test_certificate_chart_omits_and_counts_classes_with_too_few_audit_answers(db):
    say(db, [(image_id, 1) for image_id in range(1, 13)])
    audit_sampling.draw_audit(db, 60, seed=1)
    say(db, [(one.image_id, 1) for one in audit_sampling.load_open_cells(db) if one.class_id == 1], "audit")
    test = shown(db)
    assert "Not drawn, with too few audit answers: 2 classes." in words(test)
    [chart] = test.get("vega_lite_chart")
    rows = json.loads(chart.proto.spec)["layer"][1]["encoding"]["y"]["sort"]
    assert [name.strip(chart_theme.WORD_JOINER) for name in rows] == ["fox"]


def test_certificate_headline_follows_the_chosen_recall_target(db):
    say(db, [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)])
    test = shown(db)
    fine(test.segmented_control(key="target").set_value(0.9).run())
    assert "90 % recall reached" in words(test)


def test_certificate_headline_is_short_and_its_caption_states_the_conditions(db):
    say(db, [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)])
    test = shown(db)
    headline = next(one.value for one in test.markdown if "recall reached" in one.value)
    assert len(headline.replace("#", "").split()) <= 12
    assert any("95 % confidence" in one.value and "1 answer in 50 is wrong" in one.value for one in test.caption)


def test_certificate_table_shows_markup_in_class_names_as_text(db):
    classes.add_classes(db, [("*bold* <b>", "")])
    assert '<th scope="row" dir="auto">*bold* &lt;b&gt;</th>' in table(shown(db))


def test_certificate_change_key_changes_with_answers_audits_classes_and_guarantee(db):
    seen = [get_change_key(db)]

    def changed() -> bool:
        seen.append(get_change_key(db))
        return seen[-1] not in seen[:-1]

    assert get_change_key(db) == seen[0]
    decisions.save(db, [Decision(str(uuid.uuid4()), "label", "Ann", "click", 1, 1, 1)])
    assert changed()
    audit_sampling.draw_audit(db, 6)
    assert changed()
    classes.add_classes(db, [("lynx", "")])
    assert changed()
    auto_accept.set_guarantee(db, Guarantee())
    assert changed()


def test_auto_accept_toggle_is_off_by_default_and_states_the_missing_audit_answers(db):
    publish(db, np.full((24, 3), 0.4))
    test = shown(db)
    assert not test.toggle(key="accept_on").value and guarantee.get_guarantee(db) is None
    assert "99 % cannot be shown for one class here" in words(test) and "about 340 audit answers" in words(test)
    fine(test.segmented_control(key="accept_precision").set_value(0.95).run())
    assert "95 % cannot be shown for one class here" in words(test) and guarantee.get_guarantee(db) is None
    fine(test.toggle(key="accept_on").set_value(True).run())
    assert guarantee.get_guarantee(db) == Guarantee(0.95)
    assert "Auto-accept is on; still needed" in words(test)
    fine(test.checkbox(key="accept_absent").set_value(True).run())
    assert guarantee.get_guarantee(db) == Guarantee(0.95, absent=True)


@pytest.mark.slow
def test_start_the_check_button_creates_an_audit_or_reports_that_no_model_exists(db, many):
    test = button(shown(db), "Start the check").click().run()
    assert "no model yet" in words(test)
    test = shown(many)
    fine(test.segmented_control(key="accept_precision").set_value(0.95).run())
    fine(button(test, "Start the check").click().run())
    assert len(audits.load_audits(many)) == 1


def test_certificate_page_lists_auto_accepted_labels_and_undoes_them_in_one_step(many):
    auto_accept_sample.draw_audit(many, Guarantee(0.98))
    answer_audit(many)
    auto_accept.set_guarantee(many, Guarantee(0.98))
    [held] = auto_accepted.load_acceptances(many)
    test = shown(many)
    assert f"{held.cells:,} answers accepted" in words(test) and test.toggle(key="accept_on").value
    fine(button(test, "Undo").click().run())
    assert auto_accepted.count_accepted(many)["present"] == 0 and guarantee.get_guarantee(many) is None
    assert not test.toggle(key="accept_on").value
    assert "1 removed" in [one.label for one in test.expander]


def test_class_marked_absent_everywhere_is_listed_and_undo_keeps_auto_accept_on(many):
    auto_accept.set_guarantee(many, Guarantee(0.98))
    drawn = [(image_id, 2, -1, None) for image_id in range(1, 289)]
    assert not decisions.save(many, [Batch(str(uuid.uuid4()), "Ann", "sample", drawn)]).refused
    ruled = rule_out.rule_out_class(many, 2, "*Ann*")
    test = shown(many)
    told = "after 288 random images: 'heron', 912 images, at most 1.0 % of all show it (95 %)."
    assert f"Ruled out by *Ann* {told}" in words(test) and f"Ruled out by a person {told}" in words(test)
    assert "answers accepted" not in words(test)
    fine(test.button(key=f"take_back_{ruled.batch}").click().run())
    assert auto_accepted.load_accepted_cells(many) == {} and guarantee.get_guarantee(many) == Guarantee(0.98)
    assert test.toggle(key="accept_on").value and told not in words(test)


def test_open_page_keeps_auto_accept_enabled_by_another_user(db):
    test = shown(db)
    auto_accept.set_guarantee(db, Guarantee(0.995))
    fine(test.segmented_control(key="target").set_value(0.9).run())
    assert guarantee.get_guarantee(db) == Guarantee(0.995)
    assert test.toggle(key="accept_on").value and test.segmented_control(key="accept_precision").value == 0.995


@pytest.mark.slow
@pytest.mark.parametrize("page", ["certificate", "export"])
def test_export_and_certificate_pages_offer_the_data_card_as_markdown_and_json(db, page):
    labels = [one.label for one in shown(db, page).download_button]
    assert {"Download labels.card.md", "Download labels.card.json"} <= set(labels)


def test_interval_chart_has_a_row_per_class_and_omits_unknown_estimates():
    table = pd.DataFrame(
        [
            {"class": f"class {number}", "kind": kind, "estimate": None if number else 0.5, "low": 0.2, "high": 0.9}
            for number in range(80)
            for kind in (certificate_charts.INTERVAL_KINDS[0], certificate_charts.INTERVAL_KINDS[2])
        ]
    )
    drawn = json.loads(certificate_charts.build_interval_chart(table, 0.98, chart_theme.DARK_PALETTE).to_json())
    assert drawn["height"] > 80 * 24
    assert [one["mark"]["type"] for one in drawn["layer"]] == ["rule", "rule", "point"]
    assert drawn["layer"][2]["transform"] == [{"filter": "isValid(datum.estimate)"}]
