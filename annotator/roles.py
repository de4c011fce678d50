"""The rights of roles, each including lower ones."""

from enum import IntEnum, StrEnum

from annotator.errors import AnnotatorError, did_you_mean


class Right(IntEnum):
    """A level of permission, where each level includes all lower ones."""

    NOTHING = 0
    LOOK = 1  # see images, labels, progress
    ANSWER = 2  # decide about images, take back one's own decisions
    REVIEW = 3  # settle, order audits, auto-accept, export
    OWN = 4  # classes, images, imports, the model, members


class Role(StrEnum):
    """A member's role as stored, from "none" to "owner"."""

    NONE = "none"  # signed in, but not let in: a newcomer, or somebody who was removed
    GUEST = "guest"
    ANNOTATOR = "annotator"
    REVIEWER = "reviewer"
    OWNER = "owner"

    @property
    def highest_right(self) -> Right:
        """Return the highest right that this role has."""
        return Right(list(Role).index(self))


ROLE_DESCRIPTIONS = {
    Role.NONE: "no access",
    Role.GUEST: "looks",
    Role.ANNOTATOR: "answers",
    Role.REVIEWER: "answers, settles, audits, exports",
    Role.OWNER: "everything",
}


# What owners can keep from guests and annotators, so that nobody is led by what others answered; by page, and the
# history of an image.
HIDEABLE_PARTS = ("gallery", "map", "progress", "certificate", "history")


def parse_role(name: str) -> Role:
    """Return the role with this name, or raise AnnotatorError."""
    if name not in list(Role):
        raise AnnotatorError(f"There is no role {name!r}. {did_you_mean(name, list(Role))}")
    return Role(name)
