"""The table of networks that a project can choose from: source, size, speed, and whether they are installed."""

from dataclasses import dataclass

from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.networks import adapted, configuration
from annotator.store.networks import machine_settings as machine
from models.backbones import hub, licences
from models.backbones.curated import CURATED, curated, install_command, is_installed, reads_text
from models.backbones.packaged import plugin_backbones
from models.plugins import package_of

ADAPTED, PLUG_IN, NAMED = "adapted in this project", "plug-in", "named for this project"


@dataclass(frozen=True)
class Network:
    """A row of the table.

    Attributes:
        source: "installed", a repository on the hub, a package, "adapted in this project".
        licence: As the library names it; binds: it has to be accepted; is_accepted: it was, on this machine.
        parameters, input_size: 0 where not known without loading the network.
        reads_text: It reads texts, too.
        is_here: It needs no download; None: not known.
        images_a_second: On this machine; None: not measured.
        lacking: The command that installs what its library lacks; "" for nothing.
        hours: Time for all images of the project; None: not measured, or no project.
        is_used, is_next: The project uses it now; will use it once its features are computed.
    """

    name: str
    about: str
    source: str
    licence: str
    licence_title: str
    licence_url: str
    binds: bool
    is_accepted: bool
    parameters: int
    input_size: int
    pooling: str
    reads_text: bool
    is_here: bool | None
    lacking: str
    images_a_second: float | None
    hours: float | None
    is_used: bool
    is_next: bool


def networks(db: Database | None = None) -> list[Network]:
    """Return the curated networks, those of plug-ins and, with a project, its adapted ones and the one in use."""
    speeds, accepted = machine.speeds(), machine.accepted_licences()
    used = configuration.backbone(db) if db else ""
    following = adapted.next_backbone(db) if db else ""
    count = images.count_images(db) if db else 0

    def row(name: str, about: str, source: str, licence: str = "", is_here: bool | None = True) -> Network:
        facts, speed = curated(name), speeds.get(name)
        terms = licences.about(licence)
        return Network(
            name=name,
            about=about,
            source=source,
            licence=licence,
            licence_title=terms.title,
            licence_url=terms.url,
            binds=licences.must_be_accepted(licence),
            is_accepted=licence in accepted,
            parameters=facts.parameters if facts else 0,
            input_size=facts.input_size if facts else 0,
            pooling=facts.pooling if facts else "",
            reads_text=reads_text(name),
            is_here=is_here,
            lacking=install_command(name),
            images_a_second=speed.images_a_second if speed else None,
            hours=count / speed.images_a_second / 3600 if db and speed and speed.images_a_second > 0 else None,
            is_used=name == used,
            is_next=name == following,
        )

    rows = [
        row(
            network.name,
            network.about,
            "installed" if is_installed(network.name) else network.repository,
            network.licence,
            is_installed(network.name) or hub.cached(network.repository, network.file) is not None,
        )
        for network in CURATED
    ]
    rows += [row(name, "", f"{PLUG_IN}: {package_of(entry)}") for name, entry in plugin_backbones().items()]
    if db:
        rows += [row(own.name, f"{own.parent}, adapted.", ADAPTED, own.licence) for own in adapted.networks(db)]
        known = {network.name for network in rows}
        rows += [
            row(name, "", NAMED, is_here=None) for name in dict.fromkeys((used, following)) if name not in known | {""}
        ]
    return rows
