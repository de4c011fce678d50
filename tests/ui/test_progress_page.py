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
from annotator.ui.pages.progress import progress_charts
from annotator.ui.shared import chart_theme
from spmll.statistics.intervals import wilson_interval

SCRIPT = """
from annotator.ui.pages.progress import progress_page
progress_page.page()
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
    test = AppTest.from_string(SCRIPT, default_timeout=120).run()
    assert not test.exception and not test.error
    return test


def titles(test: AppTest) -> list[str]:
    return [one.value.removeprefix("#### ") for one in test.markdown if one.value.startswith("####")]


def test_progress_page_of_a_new_project_explains_what_each_chart_needs(project):
    told = " ".join(one.value for one in shown(project).info)
    for words in (
        "Start with Autopilot",
        "Review shows them",
        "needs about 20 labeled images",
    ):
        assert words in told


def test_progress_page_shows_the_speed_and_time_left_of_cluster_embedding(project, db):
    claim = embedding_claim.claim(db, "ray://head:10001")
    nodes = (("big", 30.0), ("small", 10.0))
    state = replace(claim, done=1200, of=10000, images_a_second=40.0, workers=3, nodes=nodes, note="old is left out: x")
    embedding_claim.report(db, state)
    said = " ".join(bar.proto.text for bar in shown(project).get("progress")).replace("\u2060", "").replace("\\", "")
    assert "annotator embed: on ray://head:10001, 1,200 of 10,000 images; 3 workers" in said
    assert "40 images a second (big 30, small 10); about 4 minutes left; old is left out: x" in said
    embedding_claim.release(db)
    assert not any("annotator embed" in bar.proto.text for bar in shown(project).get("progress"))


def test_progress_page_charts_and_figures_match_the_decisions(project, db):
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


def test_progress_page_lists_flags_and_comments_first_with_links_to_their_images(project, db):
    for image_id, action, note in ((3, "flag", "blurred | <b>"), (5, "comment", "tail\nonly"), (3, "comment", "no")):
        one = Decision(str(uuid.uuid4()), action, "<i>Ann", "click", image_id=image_id, note=note)
        assert not decisions.save(db, [one]).refused
    test = shown(project)
    assert titles(test)[:2] == ["Flagged images", "Comments"]
    flags, comments = (one.value for one in test.get("html"))
    assert "blurred | &lt;b&gt;" in flags and "<bdi>&lt;i&gt;Ann</bdi>, today " in flags
    assert comments.index(">no</p>") < comments.index(">tail\nonly</p>")
    for image_id, listed in ((3, flags), (5, comments)):
        assert f'href="annotate?image={image_id}&amp;from=progress"' in listed
    assert "thumb" not in flags  # nobody has given a name: no token


def test_progress_page_counts_missing_and_skipped_files_and_links_to_images(project, db, photos):
    assert [link.page for link in shown(project).page_link] == ["autopilot"]
    (photos / "notes.txt").write_text("no image")
    (photos / "03.jpg").unlink()
    add_folder(db, photos)
    *_, link = shown(project).page_link
    assert (link.label, link.page) == ("1 missing image and 1 skipped file: see Images", "images")


def test_reliability_table_counts_the_answers_in_each_tenth_of_the_score(project, db):
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


def test_wilson_interval_matches_published_values_and_stays_within_0_and_1():
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    for (successes, of), (low, high) in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        assert wilson_interval(successes, of) == pytest.approx((low, high), abs=2e-4)
    assert all(wilson_interval(0, of)[0] == 0.0 and wilson_interval(of, of)[1] == 1.0 for of in range(1, 50))


def test_reliability_table_excludes_unsure_answers_from_shares_and_omits_empty_bins():
    bins = [
        {"low": 0.05 * step, "high": 0.05 * step + 0.05, "present": 0, "absent": 0, "unsure": 4} for step in range(20)
    ]
    assert progress_charts.build_reliability_table(bins).empty
    bins[14]["present"], bins[15]["absent"] = 3, 1
    table = progress_charts.build_reliability_table(bins)
    assert table["shown from"].tolist() == [0.7] and table["share"].tolist() == [0.75]
    assert table["unsure"].tolist() == [8]


def test_cooccurrence_shares_are_relative_to_the_first_class():
    counts = np.array([[10, 4, 0], [4, 5, 1], [0, 1, 2]])
    table = progress_charts.build_cooccurrence_table(counts, ["fox", "heron", "deer"]).set_index(["class", "with"])
    assert table.loc[("fox", "heron"), "share"] == 0.4 and table.loc[("heron", "fox"), "share"] == 0.8
    assert table.loc[("deer", "heron"), "images"] == 1 and len(table) == 6
    assert progress_charts.build_cooccurrence_table(np.zeros((2, 2), int), ["fox", "heron"]).empty


def test_charts_of_many_classes_show_those_with_the_most_labels():
    table = pd.DataFrame({"class": [f"c{n}" for n in range(1000)], "present": range(1000), "absent": 0, "unsure": 0})
    drawn = progress_charts.build_label_chart(table, chart_theme.LIGHT_PALETTE).to_dict()
    rows = next(iter(drawn["datasets"].values()))
    assert {row["class"].removeprefix(chart_theme.WORD_JOINER) for row in rows} == {f"c{n}" for n in range(960, 1000)}
    counts = np.diag(np.arange(1000)) + 1
    assert (
        progress_charts.build_cooccurrence_table(counts, list(table["class"]))["class"].nunique()
        == progress_charts.MAX_MATRIX_CLASSES
    )


@pytest.mark.parametrize("colors", [chart_theme.LIGHT_PALETTE, chart_theme.DARK_PALETTE], ids=["light", "dark"])
def test_state_colors_contrast_with_each_other_and_with_the_background(colors):
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


def test_every_decision_source_has_a_title_and_every_title_its_own_color():
    assert set(progress_charts.SOURCE_TITLES) == set(SOURCES) - {"import"} | {"skip", "flag", "clear", "comment"}
    for colors in (chart_theme.LIGHT_PALETTE, chart_theme.DARK_PALETTE):
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
