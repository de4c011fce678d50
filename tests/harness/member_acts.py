"""The member on whose behalf the test process acts."""

import pytest

from annotator.store.database import authorization
from annotator.store.people.members import Member


@pytest.fixture
def acts():
    """Say whose request this thread is at; nobody's, the program's own, before and after."""
    who: list[int | None] = [None]
    authorization.set_member_source(lambda: who[0])
    yield lambda member: who.__setitem__(0, member.id if isinstance(member, Member) else member)
    authorization._member_sources.clear()
