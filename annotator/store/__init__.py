"""The only room that touches the disk: one SQLite file, array files beside it, and the images people pointed at.

database.py opens a project, migrates it (schema/) and is the one door to writing; begin there. May import only
records, settings, indexing, shares, errors and what of models needs no torch. One noun a file, each a handful of
functions of a Database:

    database.py place.py private.py read_only.py unfinished.py     the project's folder: opening, moving, who may read
    caches.py                                                      what an open project keeps in memory
    configuration.py versions.py consistency.py odd_rows.py        settings, cache keys, checks, rows to leave out
    health.py database_copy.py                                     what is wrong with a project; copies of project.db
    upgrading.py                                                   bringing project.db up to date, step by step
    backup.py restoring.py pruning.py                              backups of a project, bringing one back, old ones
    decisions.py refusals.py history.py sources.py                 decisions and the labels that follow from them
    cells.py columns.py incomplete.py overview.py scored.py        labels and tallies as queues and pages ask for them
    blocks.py tags.py                                              everything of some images at once; tagged exports
    image_columns.py class_states.py image_names.py tiles.py       images as the Gallery filters, orders and shows them
    comments.py image_history.py today.py                          comments, the history of an image, a person's day
    annotator_disagreement.py auto_accepted.py audits.py           disagreement, auto-accepted cells, audit samples
    classes.py class_changes.py class_history.py                   classes, what people change of them, undoing it
    class_words.py class_facts.py                                  the same in words; facts that an import brings
    name_lists.py                                                  names that may be lists of names
    class_labels.py archived.py                                    labels when classes are merged, archived, restored
    staging.py staged_names.py staged_cells.py import_changes.py import_commit.py
                                                                   what comes from outside: staged, previewed, stored
    imports.py unfinished_imports.py attributes.py                 imports, their undo and end; facts of images
    interruption.py                                                watching and ending long statements
    manifest.py                                                    what was unpacked or downloaded into a folder
    prediction_sources.py staged_scores.py access_tokens.py        scores of models from elsewhere, who may send
    name_texts.py patch_scores.py                                  texts that stand for classes; how patches fit them
    members.py acting.py                                           people and roles; on whose behalf this process writes
    leases.py selections.py answer_times.py speed_tests.py         open work, map selections, times of answers and tests
    assignment.py readings.py known_answers.py image_lists.py      who is asked what: shares, answers of several people
    blindness.py                                                   what is hidden from whom until they have answered
    files.py registration.py images.py folders.py reading.py       finding image files, names and contents
    locations/ address_registration.py fetched.py image_files.py   images that lie in buckets, read as they lie
    name_keys.py sequences.py capture.py                           orders of files, neighbours, capture times
    pixels.py whole_jpeg.py colours.py originals.py copies.py memory.py    the only decoder, and copies for the browser
    runs.py probabilities.py jobs.py heartbeat.py embedding.py arrays.py
                                                                   what workers leave for the page; array files
    adapting.py adapting_again.py adapted.py candidates.py         adapting a network, what came of it; comparisons
    features/                                                      features of images, in shards
    machine.py                                                     what belongs to the machine, not to a project
    without_pandas.py                                              imported first: sqlite_utils, without pandas
"""

from annotator.store import _sqlite_utils as without_pandas
