"""The tagger servers that pages may choose, and the environment variables with their keys.

Visitors choose from the servers that the operator lists, and on a personal server also name one of this machine. A key
is sent only to the server that the operator gave it to.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from annotator.errors import AnnotatorError
from annotator.exchange.tagging.chat_server import ChatServer
from annotator.settings import TAGGER_KEY_VARIABLE

_OPTION_PATTERN = re.compile(r"(?:([A-Za-z_][A-Za-z0-9_]*|)=)?(https?://.*)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Tagger:
    """A tagger server.

    Attributes:
        key_variable: Environment variable with the server's key, or "".
    """

    url: str
    key_variable: str = ""

    @property
    def option(self) -> str:
        """Return the tagger as a value of --tagger-url."""
        return f"{self.key_variable}={self.url}"

    @property
    def is_local(self) -> bool:
        """Return whether the server is on this machine."""
        return ChatServer(self.url).is_local


@dataclass(frozen=True)
class AllowedTaggers:
    """The tagger servers that pages may choose.

    Attributes:
        listed: Servers that the operator allows.
        are_all_listed: Whether others of this machine are refused, as for members of a project.
    """

    listed: tuple[Tagger, ...] = ()
    are_all_listed: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Return the listed taggers as values of --tagger-url."""
        return tuple(tagger.option for tagger in self.listed)

    def find(self, url: str) -> Tagger:
        """Return the allowed tagger with this URL. Raises AnnotatorError if there is none."""
        server = ChatServer(url)  # checks its form
        if tagger := next((one for one in self.listed if _normalize_url(one.url) == _normalize_url(url)), None):
            return tagger
        if server.is_local and not self.are_all_listed:
            return Tagger(url)
        allowed = [one.url for one in self.listed] + ([] if self.are_all_listed else ["servers of this machine"])
        raise AnnotatorError(
            f"{server.display_url} is not an allowed tagger. Allowed: {', '.join(allowed) or 'none'}. The operator "
            f"of this server can allow it: annotator serve PROJECT --tagger-url {server.display_url}"
        )


LOCAL_TAGGERS = AllowedTaggers()


def parse_taggers(options: Sequence[str], environment: Mapping[str, str], problems: list[str]) -> tuple[Tagger, ...]:
    """Parse the values of --tagger-url, URL or VARIABLE=URL, adding to `problems`.

    `TAGGER_KEY_VARIABLE` belongs to the only URL without a variable.
    """
    parsed = [parts for option in options if (parts := _parse_option(option, problems))]
    keyless_urls = [url for variable, url in parsed if variable is None]
    has_default = environment.get(TAGGER_KEY_VARIABLE) and TAGGER_KEY_VARIABLE not in dict(parsed)
    if has_default and len(keyless_urls) > 1:
        problems.append(
            f"{TAGGER_KEY_VARIABLE} is set, and {len(keyless_urls)} of the --tagger-url options name no variable. A "
            f"key belongs to one server: write --tagger-url {TAGGER_KEY_VARIABLE}=URL for it"
        )
    default = TAGGER_KEY_VARIABLE if has_default and len(keyless_urls) == 1 else ""
    found = [Tagger(url, default if variable is None else variable) for variable, url in parsed]
    problems += _find_key_problems(found, environment)
    urls = [_normalize_url(tagger.url) for tagger in found]
    if twice := sorted({url for url in urls if urls.count(url) > 1}):
        problems.append(f"--tagger-url {', '.join(twice)} is given twice")
    return tuple(found)


def _parse_option(option: str, problems: list[str]) -> tuple[str | None, str] | None:
    """Return (variable, URL) of VARIABLE=URL, (None, URL) of URL, or None if invalid."""
    match = _OPTION_PATTERN.fullmatch(option.strip())
    variable, url = (match[1], match[2]) if match else (None, option)
    try:
        ChatServer(url)
    except AnnotatorError as error:
        problems.append(f"--tagger-url: {error}")
        return None
    return variable, url


def _find_key_problems(taggers: Iterable[Tagger], environment: Mapping[str, str]) -> list[str]:
    problems: list[str] = []
    for tagger in taggers:
        if not tagger.key_variable:
            continue
        if not environment.get(tagger.key_variable):
            problems.append(
                f"--tagger-url {tagger.option}: the environment has no variable {tagger.key_variable}, which should "
                "hold the server's key"
            )
        elif not tagger.is_local and not tagger.url.lower().startswith("https:"):
            problems.append(
                f"--tagger-url {tagger.url}: it is not encrypted, so others could read the key in "
                f"{tagger.key_variable}. Use its https address"
            )
    return problems


def _normalize_url(url: str) -> str:
    """Return a URL without differences that lead to the same server."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    port = parts.port or _DEFAULT_PORTS.get(scheme)
    return f"{scheme}://{(parts.hostname or '').lower()}:{port}{parts.path.rstrip('/')}"
