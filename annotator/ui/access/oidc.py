"""Additions to Streamlit's provider login: reasons of a failed login, and userinfo claims."""

import html
import logging
import re
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import HTMLResponse
from starlette.types import Message, Receive, Scope, Send

from annotator.ui.access.error_pages import PAGE_TEMPLATE, PROVIDER_UNREACHABLE_HTML, SIGN_IN_FAILED_HTML
from annotator.ui.streamlit_features import LOGIN_CLAIMS_COOKIE

log = logging.getLogger("annotator.provider")

PROVIDER_TIMEOUT_SECONDS = 5.0  # to wait for the provider
NAME_CLAIMS = ("name", "preferred_username", "nickname")
HELP_HINT = 'See "When signing in fails" in docs/team.md.'
ERROR_CODE_PATTERN = re.compile("[a-z_]{1,40}")  # an error of OAuth 2.0; anything else in the address is not repeated
LOGIN_CANCELLED_MESSAGE = (
    "The login was cancelled at the login provider, or the provider does not let your account use this application."
)
PROVIDER_BUSY_MESSAGE = "The login provider has a problem of its own (%s). Try again in a few minutes."
REQUEST_REFUSED_MESSAGE = "The login provider does not accept what this server asks for (%s)."
LOGIN_UNCONFIRMED_MESSAGE = (
    "The login provider did not confirm the login to this server. Often the client secret is wrong, or one of the two "
    "clocks is off by more than two minutes."
)
LOGIN_EXPIRED_MESSAGE = "This login was begun too long ago, in another browser, or was used already."


def explain_failed_login(scope: Scope, receive: Receive, send: Send, sign_in: str, is_in: bool) -> Send:
    """Return a `send` that replaces Streamlit's response to a failed login with an explanation.

    Args:
        sign_in: Path where a login begins.
        is_in: Whether the browser already has a session, which an old login URL does not end.
    """
    query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    replaced = False

    async def send_in_words(message: Message) -> None:
        nonlocal replaced
        if message["type"] == "http.response.start":
            why = _find_failure_reason(message, query, is_in)
            if message["status"] >= 400 or why:
                replaced = True
                text = SIGN_IN_FAILED_HTML % (html.escape(why), sign_in) if why else PROVIDER_UNREACHABLE_HTML
                log.warning("%s %s", why or "The login provider did not answer, or not as one does.", HELP_HINT)
                answer = HTMLResponse(PAGE_TEMPLATE % ("", text), 403 if why else 502, {"cache-control": "no-store"})
                answer.raw_headers += [header for header in message["headers"] if header[0] == b"set-cookie"]
                await answer(scope, receive, send)
        if not replaced:
            await send(message)

    return send_in_words


def _find_failure_reason(message: Message, query: Mapping[str, str], is_in: bool) -> str:
    if message["status"] >= 400 or not ("error" in query or "code" in query):
        return ""  # on the way there, or back from signing out
    cookies = SimpleCookie()
    for name, value in message["headers"]:
        if name == b"set-cookie" and value.startswith(f"{LOGIN_CLAIMS_COOKIE}=".encode()):
            cookies.load(value.decode("latin-1"))
    user = cookies.get(LOGIN_CLAIMS_COOKIE)
    if user is not None and user.value:
        return ""
    if "error" in query:
        code = query["error"] if ERROR_CODE_PATTERN.fullmatch(query["error"]) else "unknown error"
        own = {
            "access_denied": LOGIN_CANCELLED_MESSAGE,
            "server_error": PROVIDER_BUSY_MESSAGE % code,
            "temporarily_unavailable": PROVIDER_BUSY_MESSAGE % code,
        }
        return own.get(code, REQUEST_REFUSED_MESSAGE % code)
    if user is not None:  # removed: the code could not be exchanged for a token, or the token is not valid
        return LOGIN_UNCONFIRMED_MESSAGE
    return "" if is_in else LOGIN_EXPIRED_MESSAGE


def add_user_info(claims: Mapping[str, Any], provider: Mapping[str, Any], access_token: str) -> dict[str, Any]:
    """Return ID token claims, completed with name and email from the userinfo endpoint.

    Many providers put neither into the ID token (OpenID Connect Core 1.0, section 5.4). If the endpoint fails
    or describes another subject (section 5.3.2), this is logged and the claims stay unchanged.
    """
    import httpx  # comes with Authlib's client, which only --auth oidc needs

    claims = dict(claims)
    has_name = any(claims.get(name) for name in NAME_CLAIMS)
    if has_name and claims.get("email"):
        return claims
    try:
        with httpx.Client(timeout=PROVIDER_TIMEOUT_SECONDS) as client:
            metadata = client.get(provider["server_metadata_url"], follow_redirects=True).raise_for_status().json()
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
        claims |= {name: said[name] for name in NAME_CLAIMS if name in said}
    if not claims.get("email"):  # an address and whether it is verified belong together
        claims |= {name: said.get(name) for name in ("email", "email_verified")}
    return claims
