"""What is read ahead after a start: the images that the Gallery lists, unless the app ends first."""

from harness.served import until

from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.store.database.database import Database
from annotator.ui.route_table import load_routes
from annotator.ui.serving.read_ahead import ReadAhead


def test_background_read_ahead_loads_the_gallery_listing_before_the_first_request(db):
    assert not gallery_listing.is_ready(db)
    ahead = ReadAhead(db, load_routes, max_wait=0)
    ahead.start()
    until(lambda: gallery_listing.is_ready(db))
    ahead.stop()
    fresh = Database(db.paths.project)
    kept, anew = (gallery_listing.get_listing(one, GalleryFilter(), Sorting()).get_ids(0, 100) for one in (db, fresh))
    assert kept == anew and len(kept) > 0
    fresh.close()


def test_gallery_read_ahead_stopped_before_its_delay_ends_loads_no_listing(db):
    ahead = ReadAhead(db, load_routes, max_wait=3600)
    ahead.start()
    ahead.stop()
    assert not ahead._thread.is_alive() and not gallery_listing.is_ready(db)
