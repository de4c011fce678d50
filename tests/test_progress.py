"""The Progress page: its figures are those of the store, and its charts say what the figures say."""

import uuid
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from annotator.exchange.project_setup import add_folder
from annotator.records import SOURCES, Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions, project_counts
from annotator.store.networks import embedding_claim
from annotator.ui.access import served_project
from annotator.ui.charts import progress_charts, theme
from spmll.statistics.intervals import wilson_interval

SCRIPT = """
from annotator.ui.pages import progress
progress.page()
"""


def say(db: Database, image_id: int, class_id: int, state: int, **more) -> None:
    one = Decision(
        str(uuid.uuid4()),
        "label",
        "Ann",
        more.pop("source", "click"),
        image_id=image_id,
        class_id=class_id,
        state=state,
        **more,
    )
    assert not decisions.save(db, [one]).refused


def shown(project) -> AppTest:
    served_project.open_project(project)
    test = AppTest.from_string(SCRIPT, default_timeout=30).run()
    assert not test.exception and not test.error
    return test


def titles(test: AppTest) -> list[str]:
    return [one.value.removeprefix("#### ") for one in test.markdown if one.value.startswith("####")]


def test_a_young_project_says_what_each_chart_waits_for(project):
    told = " ".join(one.value for one in shown(project).info)
    for words in (
        "Start with Autopilot",
        "Review shows them",
        "needs about 20 labeled images",
    ):
        assert words in told


def test_a_cluster_that_embeds_is_shown_with_its_speed_and_the_time_left(project, db):
    claim = embedding_claim.claim(db, "ray://head:10001")
    nodes = (("big", 30.0), ("small", 10.0))
    state = replace(claim, done=1200, of=10000, images_a_second=40.0, workers=3, nodes=nodes, note="old is left out: x")
    embedding_claim.report(db, state)
    said = " ".join(bar.proto.text for bar in shown(project).get("progress")).replace("\u2060", "").replace("\\", "")
    assert "annotator embed: on ray://head:10001, 1,200 of 10,000 images; 3 workers" in said
    assert "40 images a second (big 30, small 10); about 4 minutes left; old is left out: x" in said
    embedding_claim.release(db)
    assert not any("annotator embed" in bar.proto.text for bar in shown(project).get("progress"))


def test_charts_and_numbers_come_with_the_decisions_they_are_about(project, db):
    for image_id in range(1, 9):
        say(db, image_id, 1, 1)
        say(db, image_id, 2, -1 if image_id % 2 else 1, source="suggestion", score=0.3 + image_id / 20, run_id=1)
    decisions.save(db, [Decision(str(uuid.uuid4()), "flag", "Ann", "click", image_id=3, note="blurred | <b>")])
    test = shown(project)
    assert {
        "Decisions a minute",
        "Answers by class",
        "Calibration",
        "Suggestion accuracy",
    } <= set(titles(test))
    metrics = {metric.label: metric.value for metric in test.metric}
    assert (metrics["Labeled images"], metrics["Present"], metrics["Absent"]) == ("8 of 24", "12", "4")
    assert metrics["Flagged"] == "1"
    assert any("50 % right, of 8 answered suggestions" in caption.value for caption in test.caption)
    tables = [table.value for table in test.dataframe]
    fates = next(table for table in tables if "accepted" in table)
    assert fates[["run", "accepted", "rejected"]].to_numpy().tolist() == [[1, 4, 4]]
    curve = next(table for table in tables if "shown from" in table)
    assert curve[["present", "absent"]].sum().tolist() == [4, 4]


def test_flags_come_first_and_open_their_image_with_comments_beside_them(project, db):
    for image_id, action, note in ((3, "flag", "blurred | <b>"), (5, "comment", "tail\nonly"), (3, "comment", "no")):
        one = Decision(str(uuid.uuid4()), action, "<i>Ann", "click", image_id=image_id, note=note)
        assert not decisions.save(db, [one]).refused
    test = shown(project)
    assert titles(test)[:2] == ["Flagged images", "Comments"]
    flags, comments = (one.value for one in test.get("html"))
    assert "blurred | &lt;b&gt;" in flags and "&lt;i&gt;Ann, today " in flags
    assert comments.index("<p>no</p>") < comments.index("<p>tail\nonly</p>")
    for image_id, listed in ((3, flags), (5, comments)):
        assert f'href="annotate?image={image_id}&amp;from=progress"' in listed
    assert "thumb" not in flags  # nobody has given a name: no token


def test_files_that_cannot_be_used_are_counted_and_listed_on_the_images_page(project, db, photos):
    assert [link.page for link in shown(project).page_link] == ["autopilot"]
    (photos / "notes.txt").write_text("no image")
    (photos / "03.jpg").unlink()
    add_folder(db, photos)
    *_, link = shown(project).page_link
    assert (link.label, link.page) == ("1 missing image and 1 skipped file: see Images", "images")


def test_the_reliability_table_is_a_count_of_the_answers_in_each_tenth(project, db):
    chance = np.random.default_rng(0)
    answers = [(round(float(score), 3), int(chance.random() < score)) for score in chance.uniform(0, 0.999, 72)]
    for number, (score, found) in enumerate(answers):
        image_id, class_id = number // 3 + 1, number % 3 + 1
        say(db, image_id, class_id, 1 if found else -1, source="grid", score=score, run_id=2)
    table = progress_charts.build_reliability_table(project_counts.count_answers_by_score(db)).set_index("shown from")
    for tenth in range(10):
        there = [found for score, found in answers if int(score * 10) == tenth]
        if there:
            row = table.loc[tenth / 10]
            assert row["share"] == pytest.approx(np.mean(there)) and row["present"] + row["absent"] == len(there)
            assert row["from"] <= row["share"] <= row["to"]
    assert table[["present", "absent"]].to_numpy().sum() == 72


def test_wilsons_interval_is_that_of_the_tables_and_stays_within_0_and_1():
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    for (successes, of), (low, high) in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        assert wilson_interval(successes, of) == pytest.approx((low, high), abs=2e-4)
    assert all(wilson_interval(0, of)[0] == 0.0 and wilson_interval(of, of)[1] == 1.0 for of in range(1, 50))


def test_unsure_answers_count_for_no_share_and_empty_bins_are_left_out():
    bins = [
        {"low": 0.05 * step, "high": 0.05 * step + 0.05, "present": 0, "absent": 0, "unsure": 4} for step in range(20)
    ]
    assert progress_charts.build_reliability_table(bins).empty
    bins[14]["present"], bins[15]["absent"] = 3, 1
    table = progress_charts.build_reliability_table(bins)
    assert table["shown from"].tolist() == [0.7] and table["share"].tolist() == [0.75]
    assert table["unsure"].tolist() == [8]


def test_classes_seen_together_are_shares_of_the_class_at_the_left():
    counts = np.array([[10, 4, 0], [4, 5, 1], [0, 1, 2]])
    table = progress_charts.build_cooccurrence_table(counts, ["fox", "heron", "deer"]).set_index(["class", "with"])
    assert table.loc[("fox", "heron"), "share"] == 0.4 and table.loc[("heron", "fox"), "share"] == 0.8
    assert table.loc[("deer", "heron"), "images"] == 1 and len(table) == 6
    assert progress_charts.build_cooccurrence_table(np.zeros((2, 2), int), ["fox", "heron"]).empty


def test_of_a_thousand_classes_those_with_most_labels_are_drawn():
    table = pd.DataFrame({"class": [f"c{n}" for n in range(1000)], "present": range(1000), "absent": 0, "unsure": 0})
    drawn = progress_charts.build_label_chart(table, theme.LIGHT_PALETTE).to_dict()
    rows = next(iter(drawn["datasets"].values()))
    assert {row["class"].removeprefix(theme.WORD_JOINER) for row in rows} == {f"c{n}" for n in range(960, 1000)}
    counts = np.diag(np.arange(1000)) + 1
    assert (
        progress_charts.build_cooccurrence_table(counts, list(table["class"]))["class"].nunique()
        == progress_charts.MAX_MATRIX_CLASSES
    )


@pytest.mark.parametrize("colors", [theme.LIGHT_PALETTE, theme.DARK_PALETTE], ids=["light", "dark"])
def test_states_differ_in_lightness_and_stand_out_from_the_ground(colors):
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    present, absent, unsure = colors.states
    for one, other in ((present, absent), (present, unsure), (absent, unsure)):
        assert contrast(one, other) >= 1.5, (one, other)
    assert contrast(present, colors.background) >= 3 and contrast(absent, colors.background) >= 3
    assert contrast(colors.text, colors.background) >= 7 and contrast(colors.muted, colors.background) >= 4.5


def test_every_kind_of_decision_has_a_name_and_every_name_a_color_of_its_own():
    assert set(progress_charts.SOURCE_TITLES) == set(SOURCES) - {"import"} | {"skip", "flag", "clear", "comment"}
    for colors in (theme.LIGHT_PALETTE, theme.DARK_PALETTE):
        assert (
            len(set(colors.kinds))
            == len(set(progress_charts.SOURCE_TITLES.values()))
            == len(progress_charts.SOURCE_TITLES) - 3
        )
    assert progress_charts.SOURCE_TITLES["flag"] == progress_charts.SOURCE_TITLES["aside"], (
        "a flag is counted as one, whatever it says"
    )
    assert progress_charts.SOURCE_TITLES["reading"] == progress_charts.SOURCE_TITLES["known"], (
        "a person is not told which was which"
    )
    assert progress_charts.SOURCE_TITLES["search"] == progress_charts.SOURCE_TITLES["sample"], (
        "both look for a class without an example"
    )
