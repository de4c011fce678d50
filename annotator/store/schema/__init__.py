"""The tables of project.db, as numbered steps, a file each: new ones are added at the end, old ones are never edited.

Decisions are appended and never changed; `label` holds the newest state of each image-class cell and can be rebuilt
from them. `image` is a content, `file` a place where that content lies, so a moved or doubled file is never a second
image. Order is decided by decision ids; clocks can jump.
"""

from sqlite_utils import Migrations

from annotator.store.schema.m001 import m001
from annotator.store.schema.m002 import m002
from annotator.store.schema.m003 import m003
from annotator.store.schema.m004 import m004
from annotator.store.schema.m005 import m005
from annotator.store.schema.m006 import m006
from annotator.store.schema.m007 import m007
from annotator.store.schema.m008 import m008
from annotator.store.schema.m009 import m009
from annotator.store.schema.m010 import m010
from annotator.store.schema.m011 import m011
from annotator.store.schema.m012 import m012
from annotator.store.schema.m013 import m013
from annotator.store.schema.m014 import m014
from annotator.store.schema.m015 import m015

STEPS = (m001, m002, m003, m004, m005, m006, m007, m008, m009, m010, m011, m012, m013, m014, m015)
MIGRATIONS = Migrations("annotator")
for step in STEPS:
    MIGRATIONS()(step)
