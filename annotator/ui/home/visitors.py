"""Start page visitors: the local user, or a member of some projects.

Each project's server gives members a cookie that only proves who they are. Names are unique only within a project, so
sessions identify visitors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from annotator.roles import Right, Role
from annotator.store.people import members
from annotator.store.people.members import Member
from annotator.ui.access.access_keys import listing_cookie_name
from annotator.ui.access.tokens import Tokens
from annotator.ui.home.hosted_projects import HostedProject

LOCAL_IDENTITY = "here"  # of the local user


@dataclass(frozen=True)
class VisibleProject:
    """A project that a visitor may see."""

    place: HostedProject
    # None locally
    member: Member | None = None
    # identity of the member's session, unique over all projects. Empty locally
    session: str = ""

    @property
    def role(self) -> str:
        return self.member.role.value if self.member else ""

    @property
    def sees_all(self) -> bool:
        return self.member is None or self.member.highest_right >= Right.REVIEW


@dataclass(frozen=True)
class Visitor:
    """A visitor and their visible projects."""

    visible_projects: Sequence[VisibleProject]
    is_team: bool

    @property
    def owner(self) -> Member | None:
        return next((one.member for one in self._owned_projects), None)

    @property
    def identities(self) -> tuple[str, ...]:
        """Return the sessions in which the visitor is an owner."""
        return tuple(one.session for one in self._owned_projects) if self.is_team else (LOCAL_IDENTITY,)

    @property
    def identity(self) -> str:
        """Return the session for which pages act, or "" without the right to create projects."""
        return next(iter(self.identities), "")

    @property
    def may_create_projects(self) -> bool:
        return not self.is_team or self.owner is not None

    def may_manage(self, place: HostedProject) -> bool:
        roles = (one.role for one in self.visible_projects if one.place is place)
        return not self.is_team or Role.OWNER in roles

    @property
    def _owned_projects(self) -> list[VisibleProject]:
        return [one for one in self.visible_projects if one.member and one.member.role == Role.OWNER]


class Visitors:
    """Identifies visitors by their cookies."""

    def __init__(self, places: Sequence[HostedProject], is_team: bool):
        self._places, self._is_team = places, is_team
        self._tokens: dict[str, tuple[HostedProject, Tokens]] = {}  # the place, too: another project may get its name

    def identify(self, cookies: Mapping[str, str]) -> Visitor:
        good = [place for place in self._places if place.db is not None]
        if not self._is_team:
            return Visitor([VisibleProject(place) for place in good], False)
        return Visitor([one for place in good if (one := self._find_visible_project(place, cookies))], True)

    def _find_visible_project(self, place: HostedProject, cookies: Mapping[str, str]) -> VisibleProject | None:
        assert place.db is not None
        if place.name not in self._tokens or self._tokens[place.name][0] is not place:
            self._tokens[place.name] = place, Tokens(place.db.paths.secret)
        tokens = self._tokens[place.name][1]
        listing = tokens.read_listing(cookies.get(listing_cookie_name(place.port), ""), place.port)
        if listing is None:
            return None
        member_id, made_at, session = listing
        member = next((one for one in members.load_members(place.db) if one.id == member_id), None)
        if member is None or member.highest_right < Right.LOOK or made_at <= member.sessions_since:
            return None
        if not session or members.has_session_ended(place.db, session):
            return None
        return VisibleProject(place, member, f"{tokens.project} {session}")
