"""Members of a project: what their roles allow, in the store itself, and the log that only grows."""

import random
import threading

import numpy as np
import pytest
from harness.member_acts import acts
from harness.short_forms import mark_slow_after

from annotator.errors import AnnotatorError, Forbidden
from annotator.quality import audit_sampling, auto_accept
from annotator.queues.decided_images import get_decided_mask
from annotator.records import Decision
from annotator.roles import Right, Role
from annotator.store.classes import classes
from annotator.store.database import authorization
from annotator.store.database.database import Database
from annotator.store.labels import answer_mode, decisions, disagreed_cells, project_counts
from annotator.store.people import access_tokens, assignment, leases, members, renaming
from annotator.store.people.daily_activity import load_daily_activity
from annotator.store.people.members import Member
from annotator.store.upkeep import consistency

__all__ = ["acts"]  # a fixture


def decision(image_id: int, by: str) -> Decision:
    return Decision(f"{by}-{image_id}", "label", by, "click", image_id=image_id, class_id=1, state=1)


# What each kind of write needs; a guest may only look.
WRITES = {
    "answer": (Right.ANSWER, lambda db: decisions.save(db, [decision(1, "x")])),
    "take an image": (Right.ANSWER, lambda db: leases.lease_images(db, "holder", "x", [1], 1)),
    "take an answer back": (Right.ANSWER, lambda db: decisions.undo(db, "x")),
    "auto-accept": (Right.REVIEW, lambda db: auto_accept.set_guarantee(db, None)),
    "draw an audit": (Right.REVIEW, lambda db: audit_sampling.draw_audit(db, 2)),
    "add a class": (Right.OWN, lambda db: classes.add_classes(db, [("deer", "")])),
    "change a setting": (Right.OWN, lambda db: db.set_setting("order", "random")),
    "add a member": (Right.OWN, lambda db: members.add(db, "Eve", "owner", "x")),
    "rename a member": (Right.OWN, lambda db: renaming.rename(db, "guest", "Gus", "x")),
    "change one's own role": (Right.OWN, lambda db: members.set_role(db, "guest", "owner", "guest")),
}


@pytest.mark.parametrize("what", WRITES)
@pytest.mark.parametrize("role", Role)
def test_store_refuses_changes_by_members_whose_role_does_not_permit_them(db, acts, what, role):
    known = {name: members.add(db, name, name, "test") for name in Role}
    decisions.save(db, [decision(2, "x")])
    needed, write = WRITES[what]
    acts(known[role])
    if role.highest_right >= needed:
        write(db)
        return
    before = db.tuples("SELECT count(*), (SELECT count(*) FROM lease), (SELECT count(*) FROM setting) FROM decision")
    with pytest.raises(Forbidden, match=f"has the role {role}"):
        write(db)
    acts(None)
    after = db.tuples("SELECT count(*), (SELECT count(*) FROM lease), (SELECT count(*) FROM setting) FROM decision")
    assert after == before and members.find_member(db, "guest").role == "guest"


def test_store_refuses_decisions_of_non_members_and_allows_those_without_a_login(db, acts):
    for nobody in (authorization.NON_MEMBER_ID, 999):
        acts(nobody)
        with pytest.raises(Forbidden, match="not signed in"):
            decisions.save(db, [decision(1, "x")])
    acts(None)
    assert decisions.save(db, [decision(1, "x")]).saved


def test_member_role_change_applies_to_their_next_decision(db, acts):
    ann = members.add(db, "Ann", "annotator", "test")
    acts(ann)
    assert decisions.save(db, [decision(1, "Ann")]).saved
    acts(None)
    members.set_role(db, "Ann", "guest", "test")
    acts(ann)
    with pytest.raises(Forbidden, match="role guest"):
        decisions.save(db, [decision(2, "Ann")])
    assert project_counts.list_annotators(db) == ["Ann"], "and what she decided before stays hers"


def test_set_role_is_refused_after_another_owner_changed_the_role_meanwhile(db):
    members.add(db, "Ann", "annotator", "test")
    members.set_role(db, "Ann", "reviewer", "first", expected="annotator")
    with pytest.raises(AnnotatorError, match="role reviewer; you saw annotator"):
        members.set_role(db, "Ann", "guest", "second", expected="annotator")
    assert members.find_member(db, "Ann").role == "reviewer"


def test_last_project_owner_cannot_lose_the_owner_role(db):
    members.add(db, "Ann", "owner", "test")
    members.add(db, "Ben", "owner", "test")
    members.set_role(db, "Ann", "none", "Ben")
    with pytest.raises(AnnotatorError, match="only owner"):
        members.set_role(db, "Ben", "guest", "Ben")


def test_invitation_link_works_until_a_new_link_or_loss_of_access(db):
    members.add(db, "Ann", "annotator", "test")
    first = members.create_link(db, "Ann", "test")
    assert members.sign_in_by_link(db, first).name == "Ann" and members.sign_in_by_link(db, first), (
        "it works more than once"
    )
    second = members.create_link(db, "Ann", "test")
    assert members.sign_in_by_link(db, first) is None and members.sign_in_by_link(db, second).name == "Ann"
    members.set_role(db, "Ann", "none", "test")
    assert members.sign_in_by_link(db, second) is None
    with pytest.raises(AnnotatorError, match="no access"):
        members.create_link(db, "Ann", "test")
    stored = "\n".join(db.sql.conn.iterdump())
    assert first not in stored and second not in stored


CLAIMS = {"iss": "https://login.example.org", "sub": "1", "name": "Ann Lee", "email": "Ann@example.org"}


def test_provider_login_identifies_members_by_issuer_and_subject_and_not_by_name(db):
    ann = members.sign_in_by_provider(db, CLAIMS)
    assert (ann.name, ann.role) == ("Ann Lee", "none"), "and has no access before an owner gives it"
    renamed = members.sign_in_by_provider(db, CLAIMS | {"name": "Ann Miller"})
    assert (renamed.id, renamed.name) == (ann.id, "Ann Lee")
    other = members.sign_in_by_provider(db, CLAIMS | {"sub": "2"})
    assert other.id != ann.id and other.name == "Ann Lee 2", "two people of one name are two"
    elsewhere = members.sign_in_by_provider(db, CLAIMS | {"iss": "https://other.example.org"})
    assert elsewhere.id not in (ann.id, other.id), "and so are the same numbers at two providers"


def test_new_member_does_not_get_the_name_of_an_earlier_annotator(db):
    decisions.save(db, [decision(1, "ann lee")])
    assert members.sign_in_by_provider(db, CLAIMS).name == "Ann Lee 2"


def test_nobody_gets_the_name_of_imported_labels(db):
    for name in ("import", " Import"):
        with pytest.raises(AnnotatorError, match="annotator of imported labels"):
            members.add(db, name, "annotator", "test")
    assert members.sign_in_by_provider(db, CLAIMS | {"name": "import"}).name == "import 2"


def test_added_member_with_a_subject_is_recognised_at_the_login_provider(db):
    subject = members.build_subject(CLAIMS)
    ann = members.add(db, "Ann", "owner", "test", subject=subject)
    assert members.sign_in_by_provider(db, CLAIMS).id == ann.id
    with pytest.raises(AnnotatorError, match="at the login provider"):
        members.add(db, "Eve", "owner", "test", subject=subject)


def test_provider_login_joins_an_added_member_only_by_a_verified_email(db):
    added = members.add(db, "Ann", "reviewer", "test", email="ann@example.org")
    pretender = members.sign_in_by_provider(db, CLAIMS | {"sub": "9", "email_verified": "true"})
    assert pretender.id != added.id and pretender.role == "none"
    ann = members.sign_in_by_provider(db, CLAIMS | {"email_verified": True})
    assert (ann.id, ann.role) == (added.id, "reviewer")
    later = members.sign_in_by_provider(db, CLAIMS | {"sub": "10", "email_verified": True})
    assert later.id != added.id, "the address was given to somebody else at the provider: still two people"


@pytest.mark.parametrize("claims", [{}, {"iss": "x"}, {"iss": "x", "sub": ""}, {"iss": 1, "sub": "1"}, {"sub": "1"}])
def test_provider_login_refuses_claims_without_issuer_or_subject(db, claims):
    with pytest.raises(AnnotatorError, match="did not say who"):
        members.sign_in_by_provider(db, claims)
    assert members.load_members(db) == []


def test_members_created_at_login_get_the_chosen_role_but_never_owner(db):
    members.set_newcomer_role(db, "guest", "test")
    assert members.sign_in_by_provider(db, CLAIMS).role == "guest"
    with pytest.raises(AnnotatorError, match="cannot be owners"):
        members.set_newcomer_role(db, "owner", "test")
    with pytest.raises(AnnotatorError, match="Meanwhile somebody gave newcomers the role guest; you saw none"):
        members.set_newcomer_role(db, "annotator", "test", expected="none")
    assert members.get_newcomer_role(db) == "guest"
    db.set_setting(members.NEWCOMER_ROLE_SETTING, "owner")  # an edited file
    assert members.sign_in_by_provider(db, CLAIMS | {"sub": "2"}).role == "none"


def test_access_log_records_creation_and_revocation_of_tokens(db):
    secret = access_tokens.make(db, "tagger", "predictions", "Olga")
    access_tokens.revoke(db, "tagger", "Ann")
    entries = [(entry.by, entry.what, entry.member, entry.detail) for entry in reversed(members.load_log(db))]
    assert entries == [
        ("Olga", "token made", "", "tagger, for predictions"),
        ("Ann", "token revoked", "", "tagger"),
    ]
    assert secret not in str(entries)


def test_access_log_records_member_changes_and_cannot_be_edited(db):
    members.add(db, "Ann", "guest", "Olga")
    members.set_role(db, "Ann", "annotator", "Olga")
    members.sign_in_by_link(db, members.create_link(db, "Ann", "Olga"))
    members.sign_out_everywhere(db, "Ann", "Olga")
    entries = [(entry.by, entry.what, entry.member, entry.detail) for entry in reversed(members.load_log(db))]
    assert entries == [
        ("Olga", "added", "Ann", "as guest"),
        ("Olga", "role", "Ann", "guest to annotator"),
        ("Olga", "link", "Ann", "the first one"),
        ("Ann", "signed in", "Ann", "by invitation link"),
        ("Olga", "signed out everywhere", "Ann", ""),
    ]
    for statement in ("DELETE FROM access_log", "UPDATE access_log SET by = 'x'"):
        with pytest.raises(AnnotatorError, match="only appended"), db.writing() as sql:
            sql.conn.execute(statement)
    assert len(members.load_log(db)) == 5


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\nb", "ANN", "a n n"])
def test_adding_a_member_refuses_invalid_and_confusable_names(db, name):
    members.add(db, "Ann", "guest", "test")
    with pytest.raises(AnnotatorError):
        members.add(db, name, "guest", "test")
    assert [member.name for member in members.load_members(db)] == ["Ann"]


def test_concurrent_first_logins_create_one_member(db):
    threads = [threading.Thread(target=members.sign_in_by_provider, args=[db, CLAIMS]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [member.name for member in members.load_members(db)] == ["Ann Lee"]


def test_only_reviewers_can_resolve_a_disagreement(db, acts):
    ann, rita = members.add(db, "Ann", "annotator", "test"), members.add(db, "Rita", "reviewer", "test")
    settled = Decision("settles-it", "label", "Ann", "settlement", image_id=1, class_id=1, state=1)
    acts(ann)
    saved = decisions.save(db, [settled, decision(2, "Ann")])
    assert saved.saved == ["Ann-2"] and "needs reviewer" in saved.refused["settles-it"], "and the rest is stored"
    acts(rita)
    assert decisions.save(db, [settled]).saved == ["settles-it"]
    acts(ann)
    assert decisions.save(db, [settled]).saved == ["settles-it"], "it is stored: sending it again changes nothing"


STATES = {"+": 1, "-": -1, "?": 0, "x": None}
PEOPLE = {"A": "Ann", "B": "Ben", "C": "Cid", "R": "Rita"}


def said(db: Database, acts, people: dict[str, Member], word: str, name: str) -> None:
    """ "A+" is Ann with present, "B-" Ben with absent, "C?" Cid with unsure, "Rx" Rita, who clears; "Bu" is Ben's undo,
    "I+" a file."""
    if word[0] == "I":
        acts(None)
        assert not decisions.save(db, [Decision(name, "label", "Rita", "import", 1, 1, STATES[word[1]])]).refused
        return
    who = people[word[0]]
    acts(who)
    if word[1] == "u":
        one = Decision(name, "undo", who.name, "click")
    else:
        state = STATES[word[1]]
        one = Decision(name, "clear" if state is None else "label", who.name, "click", 1, class_id=1, state=state)
    assert not decisions.save(db, [one]).refused
    acts(None)


@pytest.mark.parametrize(
    ("words", "is_open", "state"),
    mark_slow_after(
        7,
        [
            ("A+ B- C+", True, -1),
            ("A+ B- A+", True, -1),  # one's own answer again
            ("A+ B- C?", True, -1),
            ("A+ B- Cx", True, -1),
            ("A+ B- B+", False, 1),  # now they agree
            ("A+ B- A-", False, -1),
            ("A+ B- C+ C-", True, -1),
            ("A+ B- C- Bu", True, 1),  # Ann and Cid differ, and Ann was first
            ("A+ B- C+ R+", False, 1),
            ("A+ B- R? C+", False, 1),
            ("A+ B- C+ R+ Ru", True, -1),
            ("A+ B- R+ C-", True, -1),  # what was settled is disputed anew
            ("A+ B- R+ C- A+", True, -1),
            ("A+ B- I+ C-", True, 1),  # an owner's file stands, too
        ],
    ),
)
def test_disagreement_ends_when_its_annotators_agree_or_a_reviewer_answers(db, acts, words, is_open, state):
    roles = {"A": "annotator", "B": "annotator", "C": "annotator", "R": "reviewer"}
    people = {letter: members.add(db, PEOPLE[letter], role, "test") for letter, role in roles.items()}
    for number, word in enumerate(words.split()):
        said(db, acts, people, word, f"word-{number}")
    assert disagreed_cells.count(db) == is_open
    assert [label.state for label in decisions.load_labels(db, [1])] == [state]
    assert consistency.find_problems(db) == []


@pytest.mark.slow
def test_labels_stay_consistent_after_random_decisions_of_all_roles(db, acts):
    roles = {"A": "annotator", "B": "annotator", "C": "annotator", "R": "reviewer"}
    people = {letter: members.add(db, PEOPLE[letter], role, "test") for letter, role in roles.items()}
    chance = random.Random(3)
    for number in range(400):
        word = chance.choice("AABBCCR") + chance.choice("++--?xu")
        said(db, acts, people, "I+" if number % 17 == 0 else word, f"word-{number}")
        if number % 20 == 0:
            assert consistency.find_problems(db) == []
    assert db.value("SELECT count(*) FROM opinion") > 20


def test_access_log_csv_escapes_spreadsheet_formulas_in_names(db, tmp_path, annotator):
    members.add(db, "=HYPERLINK(1)", "guest", "@Olga")
    annotator("members", "log", str(db.paths.project), "--csv", str(tmp_path / "log.csv"))
    assert ",'@Olga,added,'=HYPERLINK(1)," in (tmp_path / "log.csv").read_text()


def test_renamed_member_keeps_their_role_invitation_link_and_assignments(db):
    root = members.add(db, "root", "owner", "test")
    secret = members.create_link(db, "root", "root")
    assignment.assign_class(db, "root", 1)
    leases.lease_images(db, "holder", "root", [1], 1)
    ann = renaming.rename(db, "root", " Ann ", "root")
    assert (ann.id, ann.name, ann.role, ann.has_link) == (root.id, "Ann", Role.OWNER, True)
    assert (signed_in := members.sign_in_by_link(db, secret)) and signed_in.name == "Ann"
    assert db.tuples("SELECT annotator FROM assignment") == [("Ann",)]
    assert not leases.load_leases_of_others(db, "another"), "a page of the old name is refused, and holds nothing"
    assert (members.load_log(db)[1].what, members.load_log(db)[1].detail) == ("renamed", "from root")


def test_renamed_member_keeps_their_decisions_and_cannot_take_a_used_name(db):
    members.add(db, "root", "owner", "test")
    members.add(db, "Ben", "annotator", "test")
    decisions.save(db, [decision(1, "root"), decision(2, "Eve"), decision(3, "root")])
    answer_mode.set_annotator_mode(db, "root", answer_mode.MODE_ALL)
    assert not get_decided_mask(db, "Ann").any() and (
        load_daily_activity(db, "root").images,
        load_daily_activity(db, "Ann").images,
    ) == (2, 0)
    renaming.rename(db, "root", "Ann", "root")
    assert consistency.find_problems(db) == [] and sorted(project_counts.list_annotators(db)) == ["Ann", "Eve"]
    assert np.flatnonzero(get_decided_mask(db, "Ann")).tolist() == [1, 3] and load_daily_activity(db, "Ann").images == 2
    assert answer_mode.get_annotator_mode(db, "Ann") == answer_mode.MODE_ALL
    assert decisions.save(db, [decision(1, "root")]).refused, "sent again, it is of somebody else by now"
    decisions.undo(db, "Ann")
    assert [one.image_id for one in decisions.load_undoable(db, "Ann", 9, 9)] == [1]
    with pytest.raises(AnnotatorError, match="Another member was called 'root' before"):
        members.add(db, " Root", "annotator", "Ann")
    newcomer = members.sign_in_by_provider(db, CLAIMS | {"name": "root"})
    assert newcomer.name == "root 2"
    renaming.rename(db, "Ann", "Anna", "Anna")
    assert members.get_current_name(db, "root") == "Anna" and renaming.rename(db, "Anna", "root", "Anna").name == "root"
    with pytest.raises(AnnotatorError, match="Somebody called Eve has answered here before"):
        renaming.rename(db, "Ben", "Eve", "root")
    with pytest.raises(AnnotatorError, match="There is a member 'root' already"):
        renaming.rename(db, "Ben", "Root", "root")
    assert renaming.rename(db, "Ben", "ben", "root").name == "ben", "its own name in other letters"
    assert sorted(project_counts.list_annotators(db)) == ["Eve", "root"] and consistency.find_problems(db) == []
