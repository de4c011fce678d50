"""Assignment: who is asked what. Blind answers of several people, fixed shares, known answers. For owners."""

import pandas as pd
import streamlit as st

from annotator.roles import Right
from annotator.shares import counted, percent
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import overlap as readings
from annotator.store.people import assignment, known_answers, members
from annotator.store.people.assignment import CLASS, FOLDER, IMAGES
from annotator.ui.access import context
from annotator.ui.parts import empty, frame
from models.statistics.intervals import wilson

KINDS = {FOLDER: "the images of a folder", IMAGES: "a list of images", CLASS: "a class"}


def page() -> None:
    """Draw the Assignment page."""
    with frame.errors_shown():
        db = context.db()
        st.subheader("Who is asked what")
        if empty.shown(db, needs_classes=False):
            return
        st.caption("Without shares, everybody works on one pool. Nobody gets what another person has open.")
        _overlap(db)
        _shares(db)
        _known(db)


def _overlap(db: Database) -> None:
    with st.container(border=True):
        st.markdown("#### Several people answer the same images")
        st.caption(
            "Random unanswered images, answered blind: other answers and predictions are hidden. Autopilot asks for "
            "them; other pages leave them out until the last answer. Later answers change no label: differences wait "
            "in Review to be settled."
        )
        chosen, done = readings.overlap(db), readings.readings(db)
        with st.form("overlap_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
            people = st.number_input(
                "People for each image", 1, readings.MOST_PEOPLE, chosen.people if chosen else 1,
                help="1: every image is answered once.",
            )  # fmt: skip
            of_images = st.number_input(
                "Percent of the images", 0.1, 100.0, 100 * chosen.share if chosen else 10.0, format="%.1f"
            )
            if st.form_submit_button("Save"):
                readings.choose(db, int(people), of_images / 100)
                st.rerun()
        if not chosen:
            return
        able = _who_answer(db)
        if able and len(able) < chosen.people:
            frame.warning(
                f"{counted(len(able), 'member')} may answer here, and {chosen.people} people are asked for. Such "
                "images wait forever: add members, or ask fewer."
            )
        finished = done.images - done.waiting
        st.progress(
            finished / max(done.images, 1),
            f"{finished:,} of {counted(done.images, 'image')} answered by {chosen.people:d} people; "
            f"{counted(done.answers, 'answer')} so far",
        )
        if done.answers:
            frame.link("agreement", "How well people agree", ":material/groups:")


def _shares(db: Database) -> None:
    with st.container(border=True):
        st.markdown("#### Fixed shares")
        st.caption(
            "Whoever has a share is asked nothing else, and nobody else is asked about it. Shares of classes are asked "
            "one "
            "class at a time."
        )
        for share in assignment.shares(db):
            _row(db, share)
        kind = st.selectbox("New share", list(KINDS), format_func=KINDS.__getitem__, key="share_kind")
        with st.form("share_form", clear_on_submit=True, border=False):
            person = _person(db)
            what = _what(db, kind)
            if st.form_submit_button("Give"):
                _give(db, person, kind, what)
                st.rerun()


def _row(db: Database, share: assignment.Share) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        of = f"class {share.what}" if share.kind == CLASS else f"{share.kind} {share.what or '(all images)'}"
        st.markdown(f"**{frame.escaped(share.annotator)}**: {frame.escaped(of)}", width=360)
        if share.kind != CLASS:
            part = share.answered / max(share.images, 1)
            st.progress(part, f"{share.answered:,} of {counted(share.images, 'image')} complete", width=320)
        if st.button("End", key=f"end_share_{share.id}", help="Everybody is asked again. No answer changes."):
            assignment.take_back(db, share.id)
            st.rerun()


def _person(db: Database) -> str:
    if names := _who_answer(db):
        return st.selectbox("Person", names)
    return st.text_input("Person", placeholder="Ann", help="The name they label under.")


def _who_answer(db: Database) -> list[str]:
    """Return the names of the members who may answer; [] where there are no members."""
    return [member.name for member in members.members(db) if member.highest_right >= Right.ANSWER]


def _what(db: Database, kind: str) -> str:
    if kind == CLASS:
        names = {class_.id: class_.name for class_ in classes.in_order(db)}
        return str(st.selectbox("Class", list(names), format_func=names.__getitem__) or "")
    if kind == FOLDER:
        return st.text_input("Folder", placeholder="site-3", help="Within the added folder. Empty: all images.")
    return st.text_area("Images", placeholder="The name of an image in each line", height=120)


def _give(db: Database, person: str, kind: str, what: str) -> None:
    if kind == CLASS:
        assignment.give_class(db, person, int(what or 0))
    elif kind == FOLDER:
        assignment.give_folder(db, person, what)
    else:
        lines = what.splitlines()
        first = next((line.strip() for line in lines if line.strip()), "")
        assignment.give_images(db, person, f"of {first} and others", lines)


def _known(db: Database) -> None:
    with st.container(border=True):
        st.markdown("#### Known answers")
        st.caption(
            "Complete images you are sure of, to see how people answer. They look like other blind "
            "answers and change no label."
        )
        count, part = known_answers.count(db), known_answers.share(db)
        with st.form("known_form", border=False):
            names = st.text_area(
                "Images", placeholder="The name of a complete image in each line", height=100,
                help="They replace those chosen before. Empty: those stay.",
            )  # fmt: skip
            with st.container(horizontal=True, vertical_alignment="bottom"):
                part_asked = st.number_input(
                    "Percent of each person's actions", 0.0, 100 * known_answers.MOST_SHARE, 100 * part or 5.0
                )
                if st.form_submit_button("Save"):
                    if names.strip():
                        known_answers.choose(db, names.splitlines(), part_asked / 100)
                    else:
                        known_answers.set_share(db, part_asked / 100)
                    st.rerun()
        if count:
            st.caption(f"{counted(count, 'image')} chosen.")
        if results := known_answers.results(db):
            st.dataframe(_table(results), hide_index=True, width="stretch")
            st.caption("With 95 % intervals, for these images: choose some as hard as others.")


def _table(results: list[known_answers.Known]) -> pd.DataFrame:
    def share(right: int, of: int) -> str:
        if not of:
            return "none asked"
        low, high = wilson(right, of)
        return f"{right:,} of {of:,} ({percent(low)} to {percent(high)})"

    return pd.DataFrame(
        {
            "person": [one.annotator for one in results],
            "images": [one.images for one in results],
            "found what is there": [share(one.found, one.present) for one in results],
            "rejected what is not": [share(one.rejected, one.absent) for one in results],
        }
    )
