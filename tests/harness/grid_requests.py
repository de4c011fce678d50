"""Requests for grids, and the cells of the grids that are returned."""

from annotator.records import WantedGrids


def wanted(holder: str = "tab", class_id: int | None = 1, size: int = 6, want: int = 1, **more) -> WantedGrids:
    return WantedGrids(holder, more.pop("annotator", "Ann"), class_id, size, more.pop("have", ()), want, **more)


def shown_tiles(work) -> list[tuple[int, int]]:
    return [(tile.image.id, one.class_id) for one in work.items for tile in one.tiles]
