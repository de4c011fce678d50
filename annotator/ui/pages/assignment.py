"""The Assignment page: blind overlap, assignments, reference images."""

import pandas as pd
import streamlit as st

from annotator.humanize import format_count, format_percent
from annotator.roles import Right
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import image_overlap
from annotator.store.people import assignment, members, reference_answers
from annotator.store.people.assignment import CLASS, FOLDER, IMAGES
from annotator.ui.access import served_project
from annotator.ui.shared import empty_notice
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_errors, show_warning
from annotator.ui.shared.page_access import draw_page_link
from spmll.statistics.intervals import wilson_interval

ASSIGNMENT_KINDS = {FOLDER: "the images of a folder", IMAGES: "a list of images", CLASS: "a class"}


def page() -> None:
    with show_errors():
        db = served_project.db()
        st.subheader("Who is asked what")
        if empty_notice.draw_if_empty(db, needs_classes=False):
            return
        st.caption("Without shares, everybody works on one pool. Nobody gets what another person has open.")
        _draw_overlap(db)
        _draw_assignments(db)
        _draw_reference_answers(db)


def _draw_overlap(db: Database) -> None:
    with st.container(border=True):
        st.markdown("#### Several people answer the same images")
        st.caption(
            "Random unanswered images, answered blind: other answers and predictions are hidden. Autopilot asks for "
            "them; other pages leave them out until the last answer. Later answers change no label: differences wait "
            "in Review to be settled."
        )
        chosen, done = image_overlap.load_overlap(db), image_overlap.load_progress(db)
        with st.form("overlap_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
            people = st.number_input(
                "People for each image", 1, image_overlap.MAX_PEOPLE_PER_IMAGE, chosen.people if chosen else 1,
                help="1: every image is answered once.",
            )  # fmt: skip
            of_images = st.number_input(
                "Percent of the images", 0.1, 100.0, 100 * chosen.share if chosen else 10.0, format="%.1f"
            )
            if st.form_submit_button("Save"):
                image_overlap.set_overlap(db, int(people), of_images / 100)
                st.rerun()
        if not chosen:
            return
        able = _list_answering_members(db)
        if able and len(able) < chosen.people:
            show_warning(
                f"{format_count(len(able), 'member')} may answer here, and {chosen.people} people are asked for. Such "
                "images wait forever: add members, or ask fewer."
            )
        finished = done.images - done.waiting
        st.progress(
            finished / max(done.images, 1),
            f"{finished:,} of {format_count(done.images, 'image')} answered by {chosen.people:d} people; "
            f"{format_count(done.answers, 'answer')} so far",
        )
        if done.answers:
            draw_page_link("agreement", "How well people agree", ":material/groups:")


def _draw_assignments(db: Database) -> None:
    with st.container(border=True):
        st.markdown("#### Fixed shares")
        st.caption(
            "Whoever has a share is asked nothing else, and nobody else is asked about it. Shares of classes are asked "
            "one "
            "class at a time."
        )
        for share in assignment.load_assignments(db):
            _draw_assignment(db, share)
        kind = st.selectbox(
            "New share", list(ASSIGNMENT_KINDS), format_func=ASSIGNMENT_KINDS.__getitem__, key="share_kind"
        )
        with st.form("share_form", clear_on_submit=True, border=False):
            person = _choose_person(db)
            what = _choose_target(db, kind)
            if st.form_submit_button("Give"):
                _create_assignment(db, person, kind, what)
                st.rerun()


def _draw_assignment(db: Database, share: assignment.Assignment) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        of = f"class {share.what}" if share.kind == CLASS else f"{share.kind} {share.what or '(all images)'}"
        st.markdown(f"**{escape_markdown(share.annotator)}**: {escape_markdown(of)}", width=360)
        if share.kind != CLASS:
            part = share.answered / max(share.images, 1)
            st.progress(part, f"{share.answered:,} of {format_count(share.images, 'image')} complete", width=320)
        if st.button("End", key=f"end_share_{share.id}", help="Everybody is asked again. No answer changes."):
            assignment.remove_assignment(db, share.id)
            st.rerun()


def _choose_person(db: Database) -> str:
    if names := _list_answering_members(db):
        return st.selectbox("Person", names)
    return st.text_input("Person", placeholder="Ann", help="The name they label under.")


def _list_answering_members(db: Database) -> list[str]:
    return [member.name for member in members.load_members(db) if member.highest_right >= Right.ANSWER]


def _choose_target(db: Database, kind: str) -> str:
    if kind == CLASS:
        names = {class_.id: class_.name for class_ in classes.load_ordered_classes(db)}
        return str(st.selectbox("Class", list(names), format_func=names.__getitem__) or "")
    if kind == FOLDER:
        return st.text_input("Folder", placeholder="site-3", help="Within the added folder. Empty: all images.")
    return st.text_area("Images", placeholder="The name of an image in each line", height=120)


def _create_assignment(db: Database, person: str, kind: str, target: str) -> None:
    if kind == CLASS:
        assignment.assign_class(db, person, int(target or 0))
    elif kind == FOLDER:
        assignment.assign_folder(db, person, target)
    else:
        lines = target.splitlines()
        first = next((line.strip() for line in lines if line.strip()), "")
        assignment.assign_images(db, person, f"of {first} and others", lines)


def _draw_reference_answers(db: Database) -> None:
    with st.container(border=True):
        st.markdown("#### Known answers")
        st.caption(
            "Complete images you are sure of, to see how people answer. They look like other blind "
            "answers and change no label."
        )
        count, part = reference_answers.count_images(db), reference_answers.get_share(db)
        with st.form("known_form", border=False):
            names = st.text_area(
                "Images", placeholder="The name of a complete image in each line", height=100,
                help="They replace those chosen before. Empty: those stay.",
            )  # fmt: skip
            with st.container(horizontal=True, vertical_alignment="bottom"):
                part_asked = st.number_input(
                    "Percent of each person's actions", 0.0, 100 * reference_answers.MAX_SHARE, 100 * part or 5.0
                )
                if st.form_submit_button("Save"):
                    if names.strip():
                        reference_answers.choose_images(db, names.splitlines(), part_asked / 100)
                    else:
                        reference_answers.set_share(db, part_asked / 100)
                    st.rerun()
        if count:
            st.caption(f"{format_count(count, 'image')} chosen.")
        if results := reference_answers.load_results(db):
            st.dataframe(_build_reference_table(results), hide_index=True, width="stretch")
            st.caption("With 95 % intervals, for these images: choose some as hard as others.")


def _build_reference_table(results: list[reference_answers.ReferenceResult]) -> pd.DataFrame:
    def format_share(right: int, total: int) -> str:
        if not total:
            return "none asked"
        low, high = wilson_interval(right, total)
        return f"{right:,} of {total:,} ({format_percent(low)} to {format_percent(high)})"

    return pd.DataFrame(
        {
            "person": [one.annotator for one in results],
            "images": [one.images for one in results],
            "found what is there": [format_share(one.found, one.present) for one in results],
            "rejected what is not": [format_share(one.rejected, one.absent) for one in results],
        }
    )
