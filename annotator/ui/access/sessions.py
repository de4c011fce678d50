"""Sessions: the member named by a browser's signed cookie, for pages and routes.

Roles are looked up, so revoking one acts immediately on writes and within ROLE_CACHE_SECONDS on reads. The
log records sign-outs, which end all copies of a cookie and survive a restart.
"""

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import streamlit as st
from itsdangerous import BadSignature, URLSafeTimedSerializer

from annotator.errors import AnnotatorError
from annotator.roles import Right
from annotator.store.database import authorization
from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.store.people.members import Member
from annotator.ui.access.access_keys import cookie_name
from annotator.ui.access.oidc import add_user_info
from annotator.ui.access.serving_modes import Access
from annotator.ui.access.tokens import Tokens
from annotator.ui.streamlit_features import (
    LOGIN_CLAIMS_COOKIE,
    LOGIN_TOKENS_COOKIE,
    is_page_script_thread,
    read_login_cookie,
)

ROLE_CACHE_SECONDS = 1.0  # for which roles are not looked up again
SESSION_SECONDS = 7 * 24 * 3600.0  # after a login at a provider; then the provider is asked again

_MEMBER_STATE_KEY = "member_id"  # in the session state of a page, which only the server sees
# The member whose request the running task handles; the threads that a route starts inherit it.
_asking_member: ContextVar[int | None] = ContextVar("asking", default=None)


class Sessions:
    """The members' sessions, found by browser cookies."""

    def __init__(self, db: Database, access: Access, tokens: Tokens):
        self.db, self.access, self.tokens = db, access, tokens
        self._lock = threading.Lock()
        self._by_id: dict[int, Member] = {}
        self._hidden: tuple[str, ...] = ()
        self._looked_up = -ROLE_CACHE_SECONDS
        self._ended: set[str] = set()
        self._last_entry = 0  # the log entry up to which _ended is complete

    def find_member(self, cookies: Mapping[str, str]) -> Member | None:
        """Return the member of a session from memory, maybe without access. None: no session or an unrecorded login."""
        own = self._read_own_session(cookies)
        if own is not None:
            if _hash_session(own) in self._ended:
                return None
            member = self._by_id.get(own[0])
            return member if member and own[1] > member.sessions_since else None
        claimed = self._read_active_login(cookies)
        if claimed is None:
            return None
        subject, at = members.build_subject(claimed[0]), claimed[1]
        member = next((member for member in self._by_id.values() if member.subject == subject), None)
        if member is None or _is_new_login(member, at):
            return None
        # The cookie's time has whole seconds.
        return member if at + 1 > member.sessions_since else None

    def sign_in(self, cookies: Mapping[str, str]) -> None:
        """Record a provider login that is new."""
        claimed = self._read_active_login(cookies)
        if claimed is None:
            return
        with self._lock:  # a page begins with many requests at once; the first one signs in
            subject = members.build_subject(claimed[0])
            known = next((some for some in members.load_members(self.db) if some.subject == subject), None)
            if known is None or _is_new_login(known, claimed[1]):
                members.sign_in_by_provider(
                    self.db, claimed[0] if known else self._complete_claims(claimed[0], cookies)
                )
            self.refresh(force=True)

    def get_session_name(self, cookies: Mapping[str, str]) -> str:
        """Return the session's name in the log, or "" without a session."""
        return next(iter(self._list_session_names(cookies)), "")

    def end(self, cookies: Mapping[str, str]) -> None:
        """End the session of these cookies and their copies (on a full disk, until the server stops)."""
        member = self.find_member(cookies)
        names = [name for name in self._list_session_names(cookies) if name not in self._ended]
        self._ended |= set(names)
        with contextlib.suppress(AnnotatorError):
            for name in names:
                members.end_session(self.db, member.name if member else "", name)

    def has_login(self, cookies: Mapping[str, str]) -> bool:
        return self._read_active_login(cookies) is not None

    def get_member(self, id_: int) -> Member | None:
        return self._by_id.get(id_)

    def has_right(self, name: str, right: Right) -> bool:
        return any(member.name == name and member.highest_right >= right for member in self._by_id.values())

    @property
    def is_stale(self) -> bool:
        """Return whether roles may have changed since they were read."""
        return time.monotonic() - self._looked_up >= ROLE_CACHE_SECONDS

    def refresh(self, force: bool = False) -> None:
        """Read members and roles if stale or `force`."""
        if force or self.is_stale:
            began = time.monotonic()
            self._by_id = {member.id: member for member in members.load_members(self.db)}
            self._hidden = members.get_hidden_views(self.db)
            ended, self._last_entry = members.load_ended_sessions(self.db, self._last_entry)
            self._ended |= ended
            self._looked_up = began

    def is_hidden(self, part: str, member: Member) -> bool:
        return member.highest_right < Right.REVIEW and part in self._hidden

    def _read_own_session(self, cookies: Mapping[str, str]) -> tuple[int, float] | None:
        return self.tokens.read_session(cookies.get(cookie_name(self.access.port), ""), self.access.port)

    def _list_session_names(self, cookies: Mapping[str, str]) -> list[str]:
        """Return the log names of sessions: hashes of decoded content, as one signed text has many spellings."""
        return [
            _hash_session(found)
            for found in (self._read_own_session(cookies), self._read_login(cookies))
            if found is not None
        ]

    def _read_active_login(self, cookies: Mapping[str, str]) -> tuple[dict[str, Any], float] | None:
        """Return (claims, unix seconds) of an active provider login, or None."""
        claimed = self._read_login(cookies)
        return None if claimed is None or _hash_session(claimed) in self._ended else claimed

    def _read_login(self, cookies: Mapping[str, str]) -> tuple[dict[str, Any], float] | None:
        if self.access.provider is None or LOGIN_CLAIMS_COOKIE not in cookies:
            return None
        try:
            claims, moments = self._read_cookie(cookies, LOGIN_CLAIMS_COOKIE)
            if not isinstance(claims, dict) or claims.get("origin") != self.access.origin:
                return None
            members.build_subject(claims)
        except (ValueError, AnnotatorError):
            return None
        return claims, min(moments)

    def _complete_claims(self, claims: dict[str, Any], cookies: Mapping[str, str]) -> dict[str, Any]:
        try:
            given, _ = self._read_cookie(cookies, LOGIN_TOKENS_COOKIE)
        except ValueError:
            given = None
        token = given.get("access_token") if isinstance(given, dict) else None
        return add_user_info(claims, self.access.provider or {}, token) if token else claims

    def _read_cookie(self, cookies: Mapping[str, str], name: str) -> tuple[Any, list[float]]:
        """Return (content or None, signing times) of a Streamlit login cookie."""
        moments: list[float] = []

        def read_part(part: str) -> bytes | None:
            # Parts of a long cookie have names of their own, and are signed with them.
            return _unsign_value(self.tokens.get_provider_signer(part), cookies.get(part, ""), moments)

        text = read_login_cookie(read_part, name)
        return (None if text is None else json.loads(text)), moments


def _hash_session(session: tuple[Any, float]) -> str:
    return hashlib.sha256(json.dumps(session, sort_keys=True).encode()).hexdigest()[:32]


def _is_new_login(member: Member, at: float) -> bool:
    return member.signed_in_at is None or member.signed_in_at < at


def _unsign_value(signer: URLSafeTimedSerializer, text: str, moments: list[float]) -> bytes | None:
    try:
        value, moment = signer.loads(text, max_age=int(SESSION_SECONDS), return_timestamp=True)
    except (BadSignature, ValueError, TypeError):
        return None
    moments.append(moment.timestamp())
    return value.encode() if isinstance(value, str) else None


def set_asking_member(member_id: int) -> None:
    """Set the member of the running request (`NON_MEMBER_ID` without one)."""
    _asking_member.set(member_id)


def get_script_member(sessions: Sessions) -> Member | None:
    """Return the member whose page script this thread runs, or None."""
    sessions.refresh()
    cookies = st.context.cookies.to_dict()
    if cookies:
        member = sessions.find_member(cookies)
        st.session_state[_MEMBER_STATE_KEY] = authorization.NON_MEMBER_ID if member is None else member.id
        return member
    # The browser has gone while the script runs on: what it has begun is still that person's.
    return sessions.get_member(st.session_state.get(_MEMBER_STATE_KEY, authorization.NON_MEMBER_ID))


def enforce_roles(sessions: Sessions) -> None:
    """Make the store check every write by role."""

    def get_asking_member() -> int | None:
        if not is_page_script_thread():
            return _asking_member.get()
        member = get_script_member(sessions)
        return authorization.NON_MEMBER_ID if member is None else member.id

    authorization.set_member_source(get_asking_member)
