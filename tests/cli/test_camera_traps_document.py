"""docs/camera-traps.md: every command is run, from the card to a package that says what people said."""

import csv
import re
import shlex
from pathlib import Path

from conftest import draw
from PIL import Image

PAGE = Path(__file__).resolve().parents[2] / "docs" / "camera-traps.md"


def photograph(path: Path, seed: int) -> None:
    """Draw a photo with the time at which it was taken."""
    draw(path.with_suffix(".png"), seed=seed)
    with Image.open(path.with_suffix(".png")) as image:
        facts = Image.Exif()
        facts.get_ifd(0x8769)[0x9003] = f"2024:05:0{seed % 9 + 1} 06:12:00"
        image.convert("RGB").save(path, "JPEG", exif=facts)
    path.with_suffix(".png").unlink()


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_camera_trap_documentation_commands_run_from_memory_card_to_package_and_back(tmp_path, annotator):
    for seed, name in enumerate(("north/RCNX0001", "north/RCNX0002", "south/RCNX0001", "south/RCNX0002")):
        (tmp_path / "card" / name).parent.mkdir(parents=True, exist_ok=True)
        photograph(tmp_path / "card" / f"{name}.JPG", seed)
    (tmp_path / "species.txt").write_text("Cervus elaphus\nVulpes vulpes\nhuman\n")
    (tmp_path / "deployments.csv").write_text("deploymentID,latitude,longitude\nnorth,51.5,4.7\nsouth,51.4,4.8\n")
    rows = "RelativePath,File,Species\nnorth,RCNX0001.JPG,Vulpes vulpes\nsouth,RCNX0002.JPG,human\n"
    (tmp_path / "checked.csv").write_text(rows)
    said = ""
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            said += annotator(*shlex.split(line)[1:]).stdout
    assert "not valid" not in said
    media = {row["mediaID"]: row for row in table(tmp_path / "package" / "media.csv")}
    observed = {
        (media[row["mediaID"]]["fileName"], row["observationType"], row["scientificName"], row["eventStart"])
        for row in table(tmp_path / "package" / "observations.csv")
    }
    assert observed == {
        ("north/RCNX0001.JPG", "animal", "Vulpes vulpes", "2024-05-01T06:12:00Z"),
        ("north/RCNX0002.JPG", "animal", "Cervus elaphus", "2024-05-02T06:12:00Z"),
        ("south/RCNX0001.JPG", "blank", "", "2024-05-03T06:12:00Z"),
        ("south/RCNX0002.JPG", "human", "", "2024-05-04T06:12:00Z"),
    }
    places = {row["deploymentID"]: row["latitude"] for row in table(tmp_path / "package" / "deployments.csv")}
    assert places == {"north": "51.5", "south": "51.4"}
    rows = table(tmp_path / "labels.csv")
    assert sorted(row["image"].partition("/")[0] for row in rows) == ["north", "north", "south", "south"]
    labels = sorted(tuple(row[name] for name in ("Cervus elaphus", "Vulpes vulpes", "human")) for row in rows)
    assert labels == [("", "", "1"), ("", "1", ""), ("0", "0", "0"), ("1", "", "")]
