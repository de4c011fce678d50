"""The table of available backbones: source, size, speed and installation."""

from dataclasses import dataclass

from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.networks import adapted_networks, configuration, machine_settings
from spmll.backbones import hub, licenses
from spmll.backbones.curated import CURATED_NETWORKS, find_curated, get_install_command, is_packaged, reads_text
from spmll.backbones.packaged import find_plugin_backbones
from spmll.plugins import describe_package

ADAPTED_SOURCE, PLUG_IN_SOURCE, NAMED_SOURCE = "adapted in this project", "plug-in", "named for this project"


@dataclass(frozen=True)
class NetworkRow:
    """One backbone's row in the table of available backbones."""

    name: str
    about: str
    source: str
    licence: str
    licence_title: str
    licence_url: str
    # the license must be accepted
    binds: bool
    is_accepted: bool
    # parameters, input_size: 0 if unknown
    parameters: int
    input_size: int
    pooling: str
    reads_text: bool
    # needs no download
    is_here: bool | None
    # command to install missing packages, or ""
    lacking: str
    images_a_second: float | None
    # estimated time to embed all images of the project
    hours: float | None
    is_used: bool
    # will be used once its embeddings are ready
    is_next: bool


def load_network_table(db: Database | None = None) -> list[NetworkRow]:
    """Return a row for each curated or plug-in backbone, and for those adapted or used in the project."""
    speeds, accepted = machine_settings.load_speeds(), machine_settings.load_accepted_licenses()
    used = configuration.get_backbone(db) if db else ""
    following = adapted_networks.get_next_backbone(db) if db else ""
    count = images.count_images(db) if db else 0

    def build_row(name: str, about: str, source: str, licence: str = "", is_here: bool | None = True) -> NetworkRow:
        facts, speed = find_curated(name), speeds.get(name)
        terms = licenses.get_license(licence)
        return NetworkRow(
            name=name,
            about=about,
            source=source,
            licence=licence,
            licence_title=terms.title,
            licence_url=terms.url,
            binds=licenses.must_be_accepted(licence),
            is_accepted=licence in accepted,
            parameters=facts.parameters if facts else 0,
            input_size=facts.input_size if facts else 0,
            pooling=facts.pooling if facts else "",
            reads_text=reads_text(name),
            is_here=is_here,
            lacking=get_install_command(name),
            images_a_second=speed.images_a_second if speed else None,
            hours=count / speed.images_a_second / 3600 if db and speed and speed.images_a_second > 0 else None,
            is_used=name == used,
            is_next=name == following,
        )

    rows = [
        build_row(
            network.name,
            network.about,
            "installed" if is_packaged(network.name) else network.repository,
            network.licence,
            is_packaged(network.name) or hub.find_cached(network.repository, network.file) is not None,
        )
        for network in CURATED_NETWORKS
    ]
    rows += [
        build_row(name, "", f"{PLUG_IN_SOURCE}: {describe_package(entry)}")
        for name, entry in find_plugin_backbones().items()
    ]
    if db:
        rows += [
            build_row(own.name, f"{own.parent}, adapted.", ADAPTED_SOURCE, own.licence)
            for own in adapted_networks.load_networks(db)
        ]
        known = {network.name for network in rows}
        rows += [
            build_row(name, "", NAMED_SOURCE, is_here=None)
            for name in dict.fromkeys((used, following))
            if name not in known | {""}
        ]
    return rows
