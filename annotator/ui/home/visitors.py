"""Who visits the start page: the person at this computer, or a member of some of the projects.

Where projects are served to members, a project's server gives the browser of each member a cookie that this page can
read (ui/access/middleware.py); it proves who they are in that project, and nothing else. Whoever owns one of the
projects may make another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from annotator.roles import Right, Role
from annotator.store.people import members
from annotator.store.people.members import Member
from annotator.ui.access.access_keys import listing_name
from annotator.ui.access.tokens import Tokens
from annotator.ui.home.projects import Place


@dataclass(frozen=True)
class Listed:
    """A project as its visitor sees it; member: None on one's own computer."""

    place: Place
    member: Member | None = None

    @property
    def role(self) -> str:
        """Return the visitor's role; "" on one's own computer."""
        return self.member.role.value if self.member else ""

    @property
    def sees_all(self) -> bool:
        """Return whether nothing that others answered is kept from the visitor."""
        return self.member is None or self.member.highest_right >= Right.REVIEW


@dataclass(frozen=True)
class Visitor:
    """A visitor and the projects that they may open."""

    listed: Sequence[Listed]
    is_team: bool

    @property
    def owner(self) -> Member | None:
        """Return the member who owns the first of the projects that the visitor owns; None for nobody."""
        return next((one.member for one in self.listed if one.member and one.member.role == Role.OWNER), None)

    @property
    def may_make(self) -> bool:
        """Return whether the visitor may make projects."""
        return not self.is_team or self.owner is not None

    def may_keep(self, place: Place) -> bool:
        """Return whether the visitor may rename, archive, back up and delete this project."""
        roles = (one.role for one in self.listed if one.place is place)
        return not self.is_team or Role.OWNER in roles

    @property
    def key(self) -> str:
        """Return for whom the pass of a page is made: it is valid for the same visitor only."""
        return f"{self.owner.id} {self.owner.name}" if self.owner else "here" if not self.is_team else ""


class Visitors:
    """Tells visitors apart by their cookies; `places` may grow meanwhile."""

    def __init__(self, places: Sequence[Place], is_team: bool):
        self._places, self._is_team = places, is_team
        self._tokens: dict[str, tuple[Place, Tokens]] = {}  # the place, too: another project may get its name

    def of(self, cookies: Mapping[str, str]) -> Visitor:
        """Return the visitor with these cookies."""
        good = [place for place in self._places if place.db is not None]
        if not self._is_team:
            return Visitor([Listed(place) for place in good], False)
        listed = [Listed(place, member) for place in good if (member := self._member(place, cookies))]
        return Visitor(listed, True)

    def _member(self, place: Place, cookies: Mapping[str, str]) -> Member | None:
        assert place.db is not None
        if place.name not in self._tokens or self._tokens[place.name][0] is not place:
            self._tokens[place.name] = place, Tokens(place.db.paths.secret)
        said = self._tokens[place.name][1].listing(cookies.get(listing_name(place.port), ""), place.port)
        if said is None:
            return None
        member = next((one for one in members.members(place.db) if one.id == said[0]), None)
        if member is None or member.highest_right < Right.LOOK or said[1] <= member.sessions_since:
            return None
        return None if members.has_ended(place.db, said[2]) else member
