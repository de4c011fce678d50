"""Commands that are killed, one class each: how to make their project, and which states are allowed after a kill.

Begin with scene.py. change_scenes.py has merges of classes and their undo, backups and restores; export_scenes.py all
layouts of exports; event_scenes.py the search for events; adaptation_scenes.py the adapting of networks and the switch
to them; classifier_scenes.py the export of a classifier.
"""

from benchmarks.faults.scenes.adaptation_scenes import Adapt, AdaptedExport, AdaptForWorker, Switch
from benchmarks.faults.scenes.change_scenes import Backup, Merge, Prune, Restore, UndoMerge
from benchmarks.faults.scenes.classifier_scenes import ClassifierExport
from benchmarks.faults.scenes.event_scenes import ChangeGap, FindEvents
from benchmarks.faults.scenes.export_scenes import (
    CopiedFolder,
    DownloadedZip,
    FolderOnServer,
    LinkedFolder,
    Shards,
    SingleFile,
    TaggedFile,
)

SCENES = {
    scene.name: scene
    for scene in (
        *(Merge, UndoMerge, Backup, Prune, Restore),
        *(SingleFile, TaggedFile, CopiedFolder, LinkedFolder, Shards, DownloadedZip, FolderOnServer),
        *(FindEvents, ChangeGap),
        *(Adapt, Switch, AdaptedExport, AdaptForWorker, ClassifierExport),
    )
}
"""Name -> the scene."""
