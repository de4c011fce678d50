"""Keywords in XMP packets, which photos and .xmp sidecar files hold, and labels of our own in them.

Specification: https://github.com/adobe/xmp-docs. Keywords are `dc:subject` (flat), `lr:hierarchicalSubject`
("Species|fox") and `digiKam:TagsList` ("Species/fox"). Packets are not trusted: a document type is rejected.

XMP has no word for absent or unsure labels. Properties in OWN_NAMESPACE hold them. Their text is escaped, because XML
cannot hold all characters.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

DC_NAMESPACE = "http://purl.org/dc/elements/1.1/"
LIGHTROOM_NAMESPACE = "http://ns.adobe.com/lightroom/1.0/"
DIGIKAM_NAMESPACE = "http://www.digikam.org/ns/1.0/"
PHOTOSHOP_NAMESPACE = "http://ns.adobe.com/photoshop/1.0/"
RDF_NAMESPACE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
OWN_NAMESPACE = "urn:multilabel-annotator:labels:1/"
"""The XML namespace of image name, hash, split and labels in our exports. exiv2 adds a slash to one without."""
MAX_PACKET_BYTES = 4 << 20
HIERARCHY_SEPARATOR = "|"

_FLAT_TAG = f"{{{DC_NAMESPACE}}}subject"
_PATH_SEPARATORS = {
    f"{{{LIGHTROOM_NAMESPACE}}}hierarchicalSubject": HIERARCHY_SEPARATOR,
    f"{{{DIGIKAM_NAMESPACE}}}TagsList": "/",
}
_SIDECAR_EXTENSION_TAG = f"{{{PHOTOSHOP_NAMESPACE}}}SidecarForExtension"
_OWN_PREFIX = f"{{{OWN_NAMESPACE}}}"
_KEYWORD_MARKS = (b"subject", b"Subject", b"TagsList", OWN_NAMESPACE.encode())
_WIDE_CHARSET_STARTS = (b"\xff\xfe", b"\xfe\xff", b"\0<", b"<\0")
_NON_XML_CHARACTER = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPED_CHARACTER = re.compile("[\\\\\0-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029]")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")


@dataclass
class KeywordPacket:
    """The keywords of one photo or sidecar."""

    # keywords without a hierarchy
    flat: list[str] = field(default_factory=list[str])
    # keywords as paths, such as ("Species", "fox")
    paths: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    # file ending of the photo of a sidecar, such as "CR2", or ""
    extension: str = ""
    # properties of our exports by name, unescaped. Empty for files of other programs
    own: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def list_names(self) -> list[str]:
        """Return all keywords once, paths by their last part."""
        return list(dict.fromkeys([*self.flat, *(path[-1] for path in self.paths)]))


def parse_packet(text: bytes) -> KeywordPacket:
    """Return the keywords of a packet. Raises ValueError with a reason."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    text = text.rstrip(b"\0 \r\n\t")
    if len(text) > MAX_PACKET_BYTES:
        raise ValueError(f"it has more than {MAX_PACKET_BYTES >> 20} MB")
    packet = KeywordPacket()
    if not text.startswith(_WIDE_CHARSET_STARTS) and not any(mark in text for mark in _KEYWORD_MARKS):
        return packet
    try:
        tree = fromstring(text, forbid_dtd=True)
    except ParseError as error:
        raise ValueError(f"it is not XML: {error}") from None
    except DefusedXmlException:
        raise ValueError("it declares a document type or entities, which are not read") from None
    except (LookupError, RecursionError) as error:
        raise ValueError(f"it cannot be read: {error}") from None
    for element in tree.iter():
        packet.extension = packet.extension or element.get(_SIDECAR_EXTENSION_TAG, "")
        tag = str(element.tag)
        for name, value in element.attrib.items():
            if name.startswith(_OWN_PREFIX):
                packet.own.setdefault(name.removeprefix(_OWN_PREFIX), []).append(unescape_text(value))
        if tag == _FLAT_TAG:
            packet.flat += [name for name in map(str.strip, _list_values(element)) if name]
        elif tag in _PATH_SEPARATORS:
            parts = (_split_path(value, _PATH_SEPARATORS[tag]) for value in _list_values(element))
            packet.paths += [path for path in parts if path]
        elif tag == _SIDECAR_EXTENSION_TAG:
            packet.extension = element.text or ""
        elif tag.startswith(_OWN_PREFIX):
            own = packet.own.setdefault(tag.removeprefix(_OWN_PREFIX), [])
            own += map(unescape_text, _list_values(element))
    return packet


def _list_values(element: object) -> list[str]:
    """Return the items of a bag, or the text of an element without one."""
    items = [item.text or "" for item in element.iter(f"{{{RDF_NAMESPACE}}}li")]  # pyright: ignore[reportAttributeAccessIssue]
    return items or [element.text or ""]  # pyright: ignore[reportAttributeAccessIssue]


def _split_path(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part for part in map(str.strip, text.split(separator)) if part)


def format_packet(flat: Sequence[str], own: Mapping[str, Sequence[str]]) -> str:
    """Return a sidecar with flat keywords and our own properties."""
    shown = list(dict.fromkeys(map(replace_non_xml_characters, flat)))
    bags = [
        ("dc:subject", shown),
        # A program would read a name with this character as two levels.
        ("lr:hierarchicalSubject", [name for name in shown if HIERARCHY_SEPARATOR not in name]),
        *((f"multilabel:{name}", [escape_text(value) for value in values]) for name, values in own.items()),
    ]
    body = "".join(_format_bag(tag, values) for tag, values in bags if values)
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
        f'<x:xmpmeta xmlns:x="adobe:ns:meta/">\n <rdf:RDF xmlns:rdf="{RDF_NAMESPACE}">\n'
        f'  <rdf:Description rdf:about="" xmlns:dc="{DC_NAMESPACE}" xmlns:lr="{LIGHTROOM_NAMESPACE}"'
        f' xmlns:multilabel="{OWN_NAMESPACE}">\n{body}'
        '  </rdf:Description>\n </rdf:RDF>\n</x:xmpmeta>\n<?xpacket end="w"?>\n'
    )


def _format_bag(tag: str, values: Sequence[str]) -> str:
    # A carriage return that is not escaped is read as a newline.
    items = "".join(f"     <rdf:li>{escape(value, {chr(13): '&#13;'})}</rdf:li>\n" for value in values)
    return f"   <{tag}>\n    <rdf:Bag>\n{items}    </rdf:Bag>\n   </{tag}>\n"


def replace_non_xml_characters(text: str) -> str:
    """Return the text as other programs see it: without characters that XML cannot hold, or outer spaces."""
    return _NON_XML_CHARACTER.sub("\ufffd", text).strip() or "\ufffd"


def escape_text(text: str) -> str:
    """Return text that survives XML and its tools: quoted, because they remove outer spaces."""
    return '"' + _ESCAPED_CHARACTER.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + '"'


def unescape_text(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
