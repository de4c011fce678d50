"""Annotate at the sizes of people's screens: what is pressed and looked at is on the screen, not below it."""

import pytest
from harness.person import open_page, served_photos, wait_for_picture

from annotator.store.classes import class_changes
from annotator.store.database.database import Database

pytestmark = pytest.mark.browser

NAMES = [
    f"{size} {thing}"
    for size in ("red", "big", "wet", "odd")
    for thing in ("car", "dog", "cup", "hat", "bus", "cow", "box")
]
SEEN = """() => {
  const root = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".stage")).shadowRoot;
  const box = (one) => one.getBoundingClientRect();
  const screen = { top: 0, bottom: innerHeight, right: innerWidth };
  const list = box(root.querySelector(".classes"));
  const inside = (at, around) => at.top >= around.top && at.bottom <= around.bottom && at.right <= around.right;
  const within = (one, around) => inside(box(one), around);
  const classes = [...root.querySelectorAll(".classes .class")];
  const seen = classes.filter((one) => within(one, screen) && within(one, list));
  const tools = [...root.querySelectorAll(".answers button, .steps button, .row .tools button")];
  return {
    classes: seen.length,
    keys: seen.filter((one) => one.querySelector("kbd").checkVisibility()).length,
    small: classes.filter((one) => Math.min(box(one).width, box(one).height) < 24).length,
    away: tools.filter((one) => !within(one, screen)).map((one) => one.textContent),
    picture: box(root.querySelector(".stage")).height / innerHeight,
    scrolls: document.documentElement.scrollWidth > innerWidth,
  };
}"""


@pytest.fixture(scope="module")
def street(tmp_path_factory):
    """An app with 28 classes under four headings, each with a key."""
    with served_photos(tmp_path_factory.mktemp("street"), 6, NAMES) as served:
        headings = {number + 1: {"heading": f"{name.split()[0]} things"} for number, name in enumerate(NAMES)}
        class_changes.edit(Database(served.project), "Ann", headings)
        yield served


@pytest.mark.slow
def test_annotate_shows_28_classes_on_desktop_and_gives_the_image_half_of_a_phone_screen(browser, street):
    sizes = {
        "desk": {"viewport": {"width": 1366, "height": 768}},
        "narrow": {"viewport": {"width": 700, "height": 768}},
        "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    }
    seen = {}
    for name, size in sizes.items():
        page = open_page(browser, street, name, **size)
        wait_for_picture(page)
        seen[name] = page.evaluate(SEEN)
        if name == "phone":
            first = seen[name]
            for _ in range(3):
                page.get_by_role("button", name="Dismiss hint").tap()
            page.reload()
            wait_for_picture(page)
            seen[name] = page.evaluate(SEEN)
            assert not first["away"] and first["picture"] >= 0.43, "with a hint above it"
    assert {name: (one["away"], one["scrolls"], one["small"]) for name, one in seen.items()} == dict.fromkeys(
        sizes, ([], False, 0)
    )
    assert all(seen[name]["classes"] == seen[name]["keys"] == 28 for name in ("desk", "narrow")), seen
    assert seen["phone"]["picture"] >= 0.5 and seen["phone"]["classes"] >= 6, seen
