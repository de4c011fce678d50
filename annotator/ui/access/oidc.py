"""Additions to Streamlit's login at a provider: why somebody was not signed in, and facts of the userinfo endpoint.

A person whom Streamlit cannot sign in is sent back to the page they came from, and only the log has the reason.
"""

import html
import logging
import re
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import HTMLResponse
from starlette.types import Message, Receive, Scope, Send
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from annotator.ui.access.error_pages import NOT_SIGNED_IN, PAGE, UNREACHABLE

log = logging.getLogger("annotator.provider")

SECONDS = 5.0  # to wait for the provider
ABOUT_PERSON = ("name", "preferred_username", "nickname")
HELP = 'See "When signing in fails" in docs/team.md.'
CODE = re.compile("[a-z_]{1,40}")  # an error of OAuth 2.0; anything else in the address is not repeated
CANCELLED = (
    "The login was cancelled at the login provider, or the provider does not let your account use this application."
)
BUSY = "The login provider has a problem of its own (%s). Try again in a few minutes."
REFUSED = "The login provider does not accept what this server asks for (%s)."
UNUSABLE = (
    "The login provider did not confirm the login to this server. Often the client secret is wrong, or one of the two "
    "clocks is off by more than two minutes."
)
STALE = "This login was begun too long ago, in another browser, or was used already."


def in_words(scope: Scope, receive: Receive, send: Send, sign_in: str, is_in: bool) -> Send:
    """Return a `send` that replaces an answer of Streamlit's login that signs nobody in.

    The page in its place says why, and what to do.

    Args:
        scope: The request, as ASGI has it.
        receive: Of the same request.
        send: Sends the answer to the browser.
        sign_in: The address at which a login begins.
        is_in: The browser has a session already, which an old address of a login does not end.
    """
    query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    replaced = False

    async def send_in_words(message: Message) -> None:
        nonlocal replaced
        if message["type"] == "http.response.start":
            why = _why_not(message, query, is_in)
            if message["status"] >= 400 or why:
                replaced = True
                text = NOT_SIGNED_IN % (html.escape(why), sign_in) if why else UNREACHABLE
                log.warning("%s %s", why or "The login provider did not answer, or not as one does.", HELP)
                answer = HTMLResponse(PAGE % ("", text), 403 if why else 502, {"cache-control": "no-store"})
                answer.raw_headers += [header for header in message["headers"] if header[0] == b"set-cookie"]
                await answer(scope, receive, send)
        if not replaced:
            await send(message)

    return send_in_words


def _why_not(message: Message, query: Mapping[str, str], is_in: bool) -> str:
    """Return why the answer to a browser that is back from the provider signs nobody in.

    "" where it signs somebody in, or should not.
    """
    if message["status"] >= 400 or not ("error" in query or "code" in query):
        return ""  # on the way there, or back from signing out
    cookies = SimpleCookie()
    for name, value in message["headers"]:
        if name == b"set-cookie" and value.startswith(f"{USER_COOKIE_NAME}=".encode()):
            cookies.load(value.decode("latin-1"))
    user = cookies.get(USER_COOKIE_NAME)
    if user is not None and user.value:
        return ""
    if "error" in query:
        code = query["error"] if CODE.fullmatch(query["error"]) else "unknown error"
        own = {"access_denied": CANCELLED, "server_error": BUSY % code, "temporarily_unavailable": BUSY % code}
        return own.get(code, REFUSED % code)
    if user is not None:  # removed: the code could not be exchanged for a token, or the token is not valid
        return UNUSABLE
    return "" if is_in else STALE


def with_user_info(claims: Mapping[str, Any], about: Mapping[str, Any], access_token: str) -> dict[str, Any]:
    """Return the claims of an ID token, with the name and e-mail address it lacks from the userinfo endpoint.

    Many providers put neither into the ID token (OpenID Connect Core 1.0, section 5.4). Where the endpoint does not
    answer, or speaks of somebody else (section 5.3.2), the log says so and the claims stay as they are.

    Args:
        claims: The claims of the ID token.
        about: Of the provider: server_metadata_url.
        access_token: Of the same login.
    """
    import httpx  # comes with Authlib's client, which only --auth oidc needs

    claims = dict(claims)
    has_name = any(claims.get(name) for name in ABOUT_PERSON)
    if has_name and claims.get("email"):
        return claims
    try:
        with httpx.Client(timeout=SECONDS) as client:
            metadata = client.get(about["server_metadata_url"], follow_redirects=True).raise_for_status().json()
            endpoint = metadata.get("userinfo_endpoint")
            if not endpoint:
                return claims
            answer = client.get(endpoint, headers={"authorization": f"Bearer {access_token}"}).raise_for_status()
            said = answer.json()
        if not isinstance(said, dict) or said.get("sub") != claims["sub"]:
            raise ValueError("it speaks of somebody else")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError) as error:
        log.warning("The login provider's userinfo endpoint did not say who %s is: %s", claims["sub"], error)
        return claims
    if not has_name:
        claims |= {name: said[name] for name in ABOUT_PERSON if name in said}
    if not claims.get("email"):  # an address and whether it is verified belong together
        claims |= {name: said.get(name) for name in ("email", "email_verified")}
    return claims
