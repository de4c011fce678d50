"""The Members page of owners: roles, invitation links and a log."""

from datetime import datetime

import pandas as pd
import streamlit as st

from annotator.exchange.files.csv_cells import format_csv
from annotator.roles import HIDEABLE_PARTS, ROLE_DESCRIPTIONS, Role
from annotator.store.database.database import Database
from annotator.store.people import members, renaming
from annotator.store.people.members import Member
from annotator.ui.access import served_project
from annotator.ui.access.access_keys import build_invitation_url
from annotator.ui.access.serving_modes import OIDC
from annotator.ui.shared import widget_values
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.local_time import get_time_zone
from annotator.ui.shared.markdown_text import escape_for_screen_reader, escape_markdown
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.shared.page_access import draw_download_button

HIDEABLE_PART_NAMES = {
    "gallery": "Gallery",
    "map": "Map",
    "progress": "Progress",
    "certificate": "Certificate",
    "history": "the history of an image",
}
_LINKS_KEY = "member_links"  # in the session state: the id of a member -> the link made for them
MAX_LOG_ENTRIES = 500  # entries of the log on the page; the download has all


def page() -> None:
    with show_errors():
        by, db = require_annotator_name(), served_project.db()
        if served_project.sessions() is None:
            _draw_local_notice()
            return
        st.subheader("Members")
        known = members.load_members(db)
        _draw_new_links(known)
        for member in known:
            _draw_member(db, member, by)
        _draw_add_form(db, by)
        if served_project.serving_mode() == OIDC:
            _draw_newcomer_role(db, by)
        _draw_hidden_parts(db, by)
        _draw_log(db)


def _draw_local_notice() -> None:
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


def _draw_new_links(known: list[Member]) -> None:
    """Show new invitation links until dismissed, because they cannot be read again."""
    made: dict[int, str] = st.session_state.setdefault(_LINKS_KEY, {})
    for member in known:
        if member.id not in made or not member.has_link:
            continue
        with st.container(border=True):
            st.markdown(escape_markdown(f"Send this link to {member.name} only. It is not shown again."))
            st.code(made[member.id], language=None, wrap_lines=True)
            if st.button(f"Dismiss the link of {escape_markdown(member.name)}", key=f"sent_{member.id}"):
                del made[member.id]
                st.rerun()


def _draw_member(db: Database, member: Member, by: str) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{escape_markdown(member.name)}**" + (" (you)" if member.name == by else ""), width=220)
        st.selectbox(
            f"Role of {escape_for_screen_reader(member.name)}",
            list(Role),
            format_func=lambda role: f"{role.value}: {ROLE_DESCRIPTIONS[role]}",
            label_visibility="collapsed",
            width=300,
            **widget_values.bind_setting(
                f"role_{member.id}", member.role, lambda role: _set_role(db, member, role, by)
            ),
        )
        if member.role != Role.NONE and st.button(
            "New link" if member.has_link else "Invitation link",
            key=f"link_{member.id}",
            help="Whoever opens it is signed in as this person. Earlier links stop working.",
        ):
            _create_link(db, member, by)
        if member.role != Role.NONE and st.button(
            "Sign out everywhere", key=f"out_{member.id}", help="Ends all sessions and the link."
        ):
            members.sign_out_everywhere(db, member.name, by)
            _finish_change(f"{member.name} is signed out everywhere.")
        _draw_rename(db, member, by)
        st.caption(escape_markdown(_format_sign_in(member)))


def _draw_rename(db: Database, member: Member, by: str) -> None:
    with (
        st.popover(f"Rename {escape_markdown(member.name)}", help="Their answers stay theirs. Logs keep the old name."),
        st.form(f"rename_{member.id}", border=False),
    ):
        new = st.text_input("New name", value=member.name, max_chars=members.MAX_NAME_CHARACTERS)
        if st.form_submit_button("Rename"):
            with show_errors():
                renamed = renaming.rename(db, member.name, new, by)
                _finish_change(f"{member.name} is called {renamed.name} now.")


def _set_role(db: Database, member: Member, role: Role, by: str) -> None:
    members.set_role(db, member.name, role, by, expected=member.role)
    _report_stored(f"{member.name} is {role.value} now: {ROLE_DESCRIPTIONS[role]}.")


def _report_stored(message: str) -> None:
    """Show a message about a stored change, and apply the changed roles to open sessions."""
    st.toast(escape_markdown(message))
    _refresh_roles()


def _format_sign_in(member: Member) -> str:
    signed_in = (
        f"signed in {datetime.fromtimestamp(member.signed_in_at, get_time_zone()):%Y-%m-%d %H:%M}"
        if member.signed_in_at
        else "never signed in"
    )
    how = [signed_in, *(["has a link"] if member.has_link else []), *([member.email] if member.email else [])]
    return " · ".join(how)


def _draw_add_form(db: Database, by: str) -> None:
    with st.form("member_form", clear_on_submit=True):
        st.markdown("**Add a person**")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.text_input("Name", max_chars=members.MAX_NAME_CHARACTERS, placeholder="Ann")
            roles = [role for role in Role if role != Role.NONE]
            role = st.selectbox(
                "Role", roles, index=1, format_func=lambda role: f"{role.value}: {ROLE_DESCRIPTIONS[role]}"
            )
            email = ""
            if served_project.serving_mode() == OIDC:
                email = st.text_input("E-mail address", help="Recognized when the login provider has verified it.")
            if st.form_submit_button("Add", type="primary"):
                with show_errors():
                    member = members.add(db, name, role, by, email)
                    if served_project.serving_mode() == OIDC and email:
                        _finish_change(f"{member.name} can sign in now.")
                    _create_link(db, member, by)


def _create_link(db: Database, member: Member, by: str) -> None:
    st.session_state.setdefault(_LINKS_KEY, {})[member.id] = build_invitation_url(
        db, members.create_link(db, member.name, by)
    )
    _finish_change("")


def _draw_newcomer_role(db: Database, by: str) -> None:
    current = members.get_newcomer_role(db)
    roles = [role for role in Role if role != Role.OWNER]

    def store(role: Role) -> None:
        members.set_newcomer_role(db, role, by, expected=current)
        _report_stored(f"Newcomers have the role {role.value} now.")

    st.selectbox(
        "Role of whoever signs in and is not listed",
        roles,
        format_func=lambda role: f"{role.value}: {ROLE_DESCRIPTIONS[role]}",
        **widget_values.bind_setting("newcomers", current, store),
    )


def _draw_hidden_parts(db: Database, by: str) -> None:
    current = list(members.get_hidden_views(db))

    def store(parts: list[str]) -> None:
        members.set_hidden_views(db, parts, by, expected=current)
        names = ", ".join(HIDEABLE_PART_NAMES[part] for part in parts) or "nothing"
        _report_stored(f"Kept from guests and annotators: {names}.")

    st.multiselect(
        "Guests and annotators do not see",
        HIDEABLE_PARTS,
        format_func=HIDEABLE_PART_NAMES.__getitem__,
        **widget_values.bind_setting("hidden_parts", current, store),
        help="So that nobody is led by what others answered.",
    )


def _draw_log(db: Database) -> None:
    st.subheader("Log")
    st.caption("Who signed in and who changed what, newest first. Entries cannot be deleted.")
    entries = members.load_log(db, MAX_LOG_ENTRIES)
    if not entries:
        st.caption("Nothing yet.")
        return
    st.dataframe(_build_log_table(entries), hide_index=True, width="stretch")
    draw_download_button(
        "Download all as CSV",
        lambda: _to_csv(_build_log_table(members.load_log(db))),
        file_name="access_log.csv",
        mime="text/csv",
    )


def _to_csv(table: pd.DataFrame) -> str:
    return format_csv([list(table.columns), *table.itertuples(index=False)])


def _build_log_table(entries: list[members.LogEntry]) -> pd.DataFrame:
    zone = get_time_zone()
    return pd.DataFrame(
        {
            "when": [datetime.fromtimestamp(entry.at, zone).isoformat(" ", "seconds") for entry in entries],
            "by": [entry.by for entry in entries],
            "what": [entry.what for entry in entries],
            "member": [entry.member for entry in entries],
            "detail": [entry.detail for entry in entries],
        }
    )


def _refresh_roles() -> None:
    sessions = served_project.sessions()
    if sessions is not None:
        sessions.refresh(force=True)


def _finish_change(text: str) -> None:
    _refresh_roles()
    if text:
        st.toast(escape_markdown(text))
    st.rerun()
