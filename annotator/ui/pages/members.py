"""Members: who may do what here, invitation links, newcomers, and the log of what changed. For owners."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pandas as pd
import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.files.text_cells import as_csv
from annotator.roles import ABOUT, KEPT_FROM_SIGHT, Role
from annotator.store.database.database import Database
from annotator.store.people import members, renaming
from annotator.store.people.members import Member
from annotator.ui.access import context
from annotator.ui.access.access_keys import invitation
from annotator.ui.access.serving_modes import OIDC
from annotator.ui.parts import frame

HIDEABLE = {
    "gallery": "Gallery",
    "map": "Map",
    "progress": "Progress",
    "certificate": "Certificate",
    "history": "the history of an image",
}
_LINKS = "member_links"  # in the session state: the id of a member -> the link made for them
SHOWN = 500  # entries of the log on the page; the download has all


def page() -> None:
    """Draw the Members page."""
    with frame.errors_shown():
        by, db = frame.annotator_name(), context.db()
        if context.sessions() is None:
            _local()
            return
        st.subheader("Members")
        if problem := st.session_state.pop("member_error", ""):
            frame.error(problem)
        known = members.members(db)
        _links_made(known)
        for member in known:
            _row(db, member, by)
        _add(db, by)
        if context.mode() == OIDC:
            _newcomers(db, by)
        _hidden(db, by)
        _log(db)


def _local() -> None:
    st.subheader("Members")
    st.info(
        "Only this computer is served, and whoever opens it may do everything. To let several people in, start it with "
        "one of these:"
    )
    st.code(
        "annotator serve PROJECT --auth invitation\n"
        "annotator serve PROJECT --auth oidc --oidc provider.toml --url https://labels.example.org",
        language=None,
        wrap_lines=True,
    )


def _links_made(known: list[Member]) -> None:
    """Show the invitation links made on this page, each until it is dismissed: they cannot be read again."""
    made: dict[int, str] = st.session_state.setdefault(_LINKS, {})
    for member in known:
        if member.id not in made or not member.has_link:
            continue
        with st.container(border=True):
            st.markdown(frame.escaped(f"Send this link to {member.name} only. It is not shown again."))
            st.code(made[member.id], language=None, wrap_lines=True)
            if st.button(f"Dismiss the link of {frame.escaped(member.name)}", key=f"sent_{member.id}"):
                del made[member.id]
                st.rerun()


def _row(db: Database, member: Member, by: str) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{frame.escaped(member.name)}**" + (" (you)" if member.name == by else ""), width=220)
        # With the role in its key the box shows what another owner has chosen meanwhile.
        key = f"role_{member.id}_{member.role}"
        st.selectbox(
            f"Role of {frame.spoken(member.name)}",
            list(Role),
            index=list(Role).index(member.role),
            format_func=lambda role: f"{role.value}: {ABOUT[role]}",
            label_visibility="collapsed",
            key=key,
            width=300,
            on_change=_chosen,
            args=[key, member.role, lambda role: _give_role(db, member, role, by)],
        )
        if member.role != Role.NONE and st.button(
            "New link" if member.has_link else "Invitation link",
            key=f"link_{member.id}",
            help="Whoever opens it is signed in as this person. Earlier links stop working.",
        ):
            _make_link(db, member, by)
        if member.role != Role.NONE and st.button(
            "Sign out everywhere", key=f"out_{member.id}", help="Ends all sessions and the link."
        ):
            members.sign_out_everywhere(db, member.name, by)
            _changed(f"{member.name} is signed out everywhere.")
        _rename(db, member, by)
        st.caption(frame.escaped(_seen(member)))


def _rename(db: Database, member: Member, by: str) -> None:
    with (
        st.popover(f"Rename {frame.escaped(member.name)}", help="Their answers stay theirs. Logs keep the old name."),
        st.form(f"rename_{member.id}", border=False),
    ):
        new = st.text_input("New name", value=member.name, max_chars=members.LONGEST_NAME)
        if st.form_submit_button("Rename"):
            with frame.errors_shown():
                renamed = renaming.rename(db, member.name, new, by)
                _changed(f"{member.name} is called {renamed.name} now.")


def _chosen(key: str, seen: Any, store: Callable[[Any], str]) -> None:
    """Store what was chosen in a box that showed `seen`, and show the sentence that `store` returns.

    It runs before the page is drawn again, which then shows an error, and what another owner has chosen meanwhile.
    """
    try:
        words = store(st.session_state[key])
    except AnnotatorError as problem:
        st.session_state["member_error"] = str(problem)
        st.session_state[key] = seen
        return
    st.toast(frame.escaped(words))
    _look_up()


def _give_role(db: Database, member: Member, role: Role, by: str) -> str:
    members.set_role(db, member.name, role, by, expected=member.role)
    return f"{member.name} is {role.value} now: {ABOUT[role]}."


def _seen(member: Member) -> str:
    signed_in = (
        f"signed in {datetime.fromtimestamp(member.signed_in_at, frame.zone()):%Y-%m-%d %H:%M}"
        if member.signed_in_at
        else "never signed in"
    )
    how = [signed_in, *(["has a link"] if member.has_link else []), *([member.email] if member.email else [])]
    return " · ".join(how)


def _add(db: Database, by: str) -> None:
    with st.form("member_form", clear_on_submit=True):
        st.markdown("**Add a person**")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.text_input("Name", max_chars=members.LONGEST_NAME, placeholder="Ann")
            roles = [role for role in Role if role != Role.NONE]
            role = st.selectbox("Role", roles, index=1, format_func=lambda role: f"{role.value}: {ABOUT[role]}")
            email = ""
            if context.mode() == OIDC:
                email = st.text_input("E-mail address", help="Recognized when the login provider has verified it.")
            if st.form_submit_button("Add", type="primary"):
                with frame.errors_shown():
                    member = members.add(db, name, role, by, email)
                    if context.mode() == OIDC and email:
                        _changed(f"{member.name} can sign in now.")
                    _make_link(db, member, by)


def _make_link(db: Database, member: Member, by: str) -> None:
    st.session_state.setdefault(_LINKS, {})[member.id] = invitation(db, members.new_link(db, member.name, by))
    _changed("")


def _newcomers(db: Database, by: str) -> None:
    current = members.newcomer_role(db)
    roles = [role for role in Role if role != Role.OWNER]
    key = f"newcomers_{current}"

    def store(role: Role) -> str:
        members.set_newcomer_role(db, role, by, expected=current)
        return f"Newcomers have the role {role.value} now."

    st.selectbox(
        "Role of whoever signs in and is not listed",
        roles,
        index=roles.index(current),
        format_func=lambda role: f"{role.value}: {ABOUT[role]}",
        key=key,
        on_change=_chosen,
        args=[key, current, store],
    )


def _hidden(db: Database, by: str) -> None:
    current = list(members.hidden(db))
    key = f"hidden_{'_'.join(current)}"

    def store(parts: list[str]) -> str:
        members.hide(db, parts, by, expected=current)
        return f"Kept from guests and annotators: {', '.join(HIDEABLE[part] for part in parts) or 'nothing'}."

    st.multiselect(
        "Guests and annotators do not see",
        KEPT_FROM_SIGHT,
        default=current,
        format_func=HIDEABLE.__getitem__,
        key=key,
        on_change=_chosen,
        args=[key, current, store],
        help="So that nobody is led by what others answered.",
    )


def _log(db: Database) -> None:
    st.subheader("Log")
    st.caption("Who signed in and who changed what, newest first. Entries cannot be deleted.")
    entries = members.log(db, SHOWN)
    if not entries:
        st.caption("Nothing yet.")
        return
    st.dataframe(_table(entries), hide_index=True, width="stretch")
    frame.download(
        "Download all as CSV",
        lambda: _as_csv(_table(members.log(db))),
        file_name="access_log.csv",
        mime="text/csv",
    )


def _as_csv(table: pd.DataFrame) -> str:
    return as_csv([list(table.columns), *table.itertuples(index=False)])


def _table(entries: list[members.LogEntry]) -> pd.DataFrame:
    zone = frame.zone()
    return pd.DataFrame(
        {
            "when": [datetime.fromtimestamp(entry.at, zone).isoformat(" ", "seconds") for entry in entries],
            "by": [entry.by for entry in entries],
            "what": [entry.what for entry in entries],
            "member": [entry.member for entry in entries],
            "detail": [entry.detail for entry in entries],
        }
    )


def _look_up() -> None:
    sessions = context.sessions()
    if sessions is not None:
        sessions.look_up(anew=True)


def _changed(text: str) -> None:
    _look_up()
    if text:
        st.toast(frame.escaped(text))
    st.rerun()
