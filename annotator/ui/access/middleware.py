"""Access control: ASGI middleware in front of Streamlit's pages, its WebSocket and all routes.

Locally, a one-time key in the URL is exchanged for a cookie. With members, access needs a session from an invitation or
provider login. Requests from other origins are refused even with the cookie, because browsers send one port's cookies
to all ports of a machine. Two API paths take an access token instead. With members, requests are rate-limited.
"""

import hashlib
import html
from collections.abc import Awaitable, Callable, Hashable, Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotator.roles import Right
from annotator.store.database import authorization
from annotator.store.people import members
from annotator.store.people.members import Member
from annotator.ui.access.access_keys import AccessKeys, cookie_name, listing_cookie_name
from annotator.ui.access.error_pages import (
    INVITATION_NEEDED_HTML,
    LOGIN_NEEDED_HTML,
    NO_ACCESS_HTML,
    NO_ROLE_HTML,
    OTHER_MEMBER_HTML,
    PAGE_TEMPLATE,
    SIGN_OUT_LINK_HTML,
    SIGNED_OUT_HTML,
    build_no_access_response,
    build_rate_limit_response,
    render_used_key_note,
)
from annotator.ui.access.oidc import explain_failed_login
from annotator.ui.access.rate_limit import RateLimiter, get_network
from annotator.ui.access.security_headers import build_security_headers
from annotator.ui.access.serving_modes import LOOPBACK_HOSTS, OIDC, Access
from annotator.ui.access.sessions import Sessions, set_asking_member
from annotator.ui.access.tokens import DAY_SECONDS, VALID_DAYS, Tokens
from annotator.ui.access.websocket_throttle import WebSocketThrottle
from annotator.ui.streamlit_features import create_login_token

PREDICTIONS_PATH, METRICS_PATH = "/api/predictions", "/metrics"
PROGRAM_PATHS = (PREDICTIONS_PATH, METRICS_PATH)  # need no cookie: their routes take an access token and nothing else
HEALTH_PATH = "/_stcore/health"  # open to all, so that a script can wait for the server; the answer is only "ok"
READY_PATH = "/ready"  # open to all; says in a few words whether people can work
# Streamlit's, which no page of ours uses: files are sent to /api/upload
STREAMLIT_UPLOAD_PATH = "/_stcore/upload_file/"
SIGN_IN_PATH, SIGN_OUT_PATH = "/sign-in", "/sign-out"
PROVIDER_PATHS = ("/auth/login", "/oauth2callback")  # Streamlit's, on the way to a login provider and back
PROVIDER_SIGN_OUT_PATH = "/auth/logout"  # Streamlit's, too
# in the scope of a request: the member who asks; absent where there are no members
MEMBER_SCOPE_KEY = "annotator.member"


class AccessMiddleware:
    """The access control middleware.

    Attributes:
        keys: One-time keys of this server run, or None.
        access: How the server is reached. None allows this computer only.
        sessions: The members' sessions, None without members.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Callable[[], Tokens],
        keys: AccessKeys | None = None,
        access: Access | None = None,
        sessions: Sessions | None = None,
    ):
        self.app, self.tokens, self.keys, self.access, self.sessions = app, tokens, keys, access, sessions
        self.base = access.base_path if access else ""
        self.allowance, self.pacing = RateLimiter(), WebSocketThrottle()
        self._accepted: set[bytes] = set()  # digests of tokens that a route for programs has accepted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it to the app with its member's session."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        send = self._add_security_headers(send, headers.get("host", ""))
        answer = await self._check_request(scope, headers)
        if answer is None:
            path = scope["path"].removeprefix(self.base)
            if path in PROVIDER_PATHS:
                send = explain_failed_login(scope, receive, send, self.base + SIGN_IN_PATH, MEMBER_SCOPE_KEY in scope)
            elif path in PROGRAM_PATHS:
                send = self._track_token(headers, send)
            elif scope["type"] == "websocket":
                member: Member | None = scope.get(MEMBER_SCOPE_KEY)
                await self.pacing.serve_socket(
                    self.app, scope, receive, send, member.id if member else _get_client_network(scope)
                )
                return
            else:
                send = self._add_listing_cookie(scope, send)
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, send)

    async def _check_request(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the refusal or redirect of a request, or None to let it pass."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_own_host(host):
            names = [self.access.netloc, *LOOPBACK_HOSTS] if self.access and self.access.is_team else LOOPBACK_HOSTS
            return PlainTextResponse(f"This server answers to {' and '.join(dict.fromkeys(names))} only.\n", 403)
        if origin != self._get_origin(host) and (origin is not None or scope["type"] == "websocket"):
            return PlainTextResponse("A page of another origin may not ask this server for anything.\n", 403)
        if not scope["path"].startswith(f"{self.base}/"):
            return RedirectResponse(f"{self.base}/") if scope["path"] in ("/", self.base) else _build_not_found()
        path = scope["path"].removeprefix(self.base)
        if path.startswith(STREAMLIT_UPLOAD_PATH):
            return _build_not_found()
        if path in PROGRAM_PATHS and scope["type"] == "http":
            if origin is not None:
                return PlainTextResponse("This is for programs, not for web pages.\n", 403)
            token = _hash_authorization(headers)
            return self._check_rate_limit(token if token in self._accepted else _get_client_network(scope))
        if path == READY_PATH and scope["type"] == "http":
            return self._check_rate_limit(_get_client_network(scope))
        if self.sessions is None:
            return self._check_local_request(scope, headers, path)
        return await self._check_member_request(self.sessions, scope, headers, path)

    def _check_rate_limit(self, client: Hashable) -> Response | None:
        return None if self.sessions is None or self.allowance.consume(client) else build_rate_limit_response()

    def _check_local_request(self, scope: Scope, headers: Headers, path: str) -> Response | None:
        port = scope["server"][1]
        admitted = self.tokens().is_valid_cookie(HTTPConnection(scope).cookies.get(cookie_name(port), ""), port)
        if scope["type"] == "websocket":
            return None if admitted else Response()
        key = _parse_query(scope).get("key")
        if key is not None and scope["method"] == "GET" and not path.startswith("/api/"):
            # A browser with access does not use the key up: another browser can still take it.
            if admitted:
                return self._redirect_without_key(scope, headers)
            if self.keys is not None and self.keys.redeem(key)[0]:
                return self._redirect_without_key(scope, headers, port, self.tokens().create_cookie(port))
        if admitted:
            return None
        if path == HEALTH_PATH:
            return PlainTextResponse("ok")
        return build_no_access_response(path, NO_ACCESS_HTML % (render_used_key_note(key), _build_escaped_url(scope)))

    async def _check_member_request(
        self, sessions: Sessions, scope: Scope, headers: Headers, path: str
    ) -> Response | None:
        cookies = HTTPConnection(scope).cookies
        member = await _load_member(sessions, cookies)
        if answer := self._check_rate_limit(member.id if member else _get_client_network(scope)):
            return answer
        set_asking_member(member.id if member else authorization.NON_MEMBER_ID)
        is_in = member is not None and member.highest_right >= Right.LOOK
        if is_in and (scope["type"] == "websocket" or path in PROVIDER_PATHS):
            scope[MEMBER_SCOPE_KEY] = member
        if scope["type"] == "websocket":
            return None if is_in else Response()
        if path in (SIGN_IN_PATH, SIGN_OUT_PATH, PROVIDER_SIGN_OUT_PATH, *PROVIDER_PATHS):
            return await self._handle_sign_in_paths(sessions, scope, headers, path)
        given = _parse_query(scope)
        is_page = scope["method"] == "GET" and not path.startswith("/api/")
        if is_page and ("key" in given or "invitation" in given):
            answer = await self._begin_session(sessions, scope, headers, member, given)
            if answer is not None:
                return answer
        if is_in:
            scope[MEMBER_SCOPE_KEY] = member
            return None
        if path == HEALTH_PATH:
            return PlainTextResponse("ok")
        if member is not None:
            sign_out = SIGN_OUT_LINK_HTML % (self.base + SIGN_OUT_PATH)
            return build_no_access_response(
                path, NO_ROLE_HTML % (html.escape(member.name), _build_escaped_url(scope), sign_out)
            )
        if self.access and self.access.mode == OIDC:
            return build_no_access_response(
                path, LOGIN_NEEDED_HTML % (render_used_key_note(given.get("key")), self.base + SIGN_IN_PATH)
            )
        why = render_used_key_note(given.get("key") or given.get("invitation"))
        return build_no_access_response(path, INVITATION_NEEDED_HTML % (why, _build_escaped_url(scope)))

    async def _handle_sign_in_paths(
        self, sessions: Sessions, scope: Scope, headers: Headers, path: str
    ) -> Response | None:
        is_oidc = self.access is not None and self.access.mode == OIDC
        if scope["method"] != "GET" or (path != SIGN_OUT_PATH and not is_oidc):
            return _build_not_found()
        if path in (SIGN_OUT_PATH, PROVIDER_SIGN_OUT_PATH) and headers.get("sec-fetch-site") not in (
            None,
            "same-origin",
        ):
            return PlainTextResponse("A page of another origin may not sign anybody out.\n", 403)
        if path in (SIGN_OUT_PATH, PROVIDER_SIGN_OUT_PATH):
            await run_sync(sessions.end, HTTPConnection(scope).cookies)
        if path == SIGN_OUT_PATH:
            return self._build_sign_out_response(scope, is_oidc)
        if path == SIGN_IN_PATH:
            # Streamlit's login takes a name of the provider that it has signed itself, two minutes ago at most.
            token = create_login_token()
            return _build_redirect(f"{self.base}{PROVIDER_PATHS[0]}?{urlencode({'provider': token})}")
        return None

    def _build_sign_out_response(self, scope: Scope, is_oidc: bool) -> Response:
        if is_oidc:
            answer = _build_redirect(f"{self.base}{PROVIDER_SIGN_OUT_PATH}")
        else:
            answer = HTMLResponse(PAGE_TEMPLATE % ("", SIGNED_OUT_HTML), headers={"cache-control": "no-store"})
        answer.delete_cookie(cookie_name(scope["server"][1]), path=f"{self.base}/")
        if self.access and self.access.home_url:
            answer.delete_cookie(listing_cookie_name(scope["server"][1]), path=urlsplit(self.access.home_url).path)
        return answer

    async def _begin_session(
        self, sessions: Sessions, scope: Scope, headers: Headers, member: Member | None, query: Mapping[str, str]
    ) -> Response | None:
        """Start a member's session from an invitation link or one-time key, or return None if it is not valid."""
        if "invitation" in query:
            invited = await run_sync(members.sign_in_by_link, sessions.db, query["invitation"])
        elif member is not None and member.highest_right >= Right.LOOK:
            # does not use the key up: another browser can still take it
            return self._redirect_without_key(scope, headers)
        else:
            is_valid, id_ = self.keys.redeem(query["key"]) if self.keys else (False, None)
            invited = await run_sync(members.sign_in_by_key, sessions.db, id_) if is_valid and id_ is not None else None
        if invited is None:
            return None
        if member is not None and member.id != invited.id:
            # Else a link sent by somebody would make people label in another's name without noticing.
            own, other = html.escape(member.name), html.escape(invited.name)
            sign_out = SIGN_OUT_LINK_HTML % (self.base + SIGN_OUT_PATH)
            return build_no_access_response(
                "", OTHER_MEMBER_HTML % (own, other, _build_escaped_url(scope), own, sign_out)
            )
        await run_sync(sessions.refresh, True)
        port = scope["server"][1]
        return self._redirect_without_key(
            scope, headers, port, self.tokens().create_session_cookie(port, invited.id, invited.signed_in_at)
        )

    def _redirect_without_key(self, scope: Scope, headers: Headers, port: int = 0, cookie: str = "") -> Response:
        place = _build_url_without_key(scope)
        if headers.get("sec-fetch-site") == "cross-site":
            # Browsers send no strict cookie along a redirect that began on another site (a chat, a mail, the file that
            # opens the browser). A request that this page makes begins on our own site.
            text = f'<meta http-equiv="refresh" content="0; url={html.escape(place)}">'
            answer: Response = HTMLResponse(
                PAGE_TEMPLATE % (text, f'<p><a href="{html.escape(place)}">Continue</a></p>')
            )
        else:
            answer = RedirectResponse(place, status_code=303)
        answer.headers["cache-control"] = "no-store"
        if cookie:
            answer.set_cookie(
                cookie_name(port),
                cookie,
                max_age=VALID_DAYS * DAY_SECONDS,
                path=f"{self.base}/",
                httponly=True,
                samesite="strict",
            )
        return answer

    def _track_token(self, headers: Headers, send: Send) -> Send:
        """Return a `send` that records accepted tokens, so that each gets an allowance of its own.

        Until then a program is limited by address, because invented tokens would each have an allowance.
        """

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                self._accepted.add(_hash_authorization(headers))
            elif message["type"] == "http.response.start" and message["status"] == 401:
                self._accepted.discard(_hash_authorization(headers))
            await send(message)

        return send_and_note

    def _add_listing_cookie(self, scope: Scope, send: Send) -> Send:
        member: Member | None = scope.get(MEMBER_SCOPE_KEY)
        home = self.access.home_url if self.access else ""
        if not home or member is None or scope["type"] != "http" or scope["method"] != "GET":
            return send
        path, port = scope["path"].removeprefix(self.base), scope["server"][1]
        had = self.tokens().read_listing(HTTPConnection(scope).cookies.get(listing_cookie_name(port), ""), port)
        is_page = not path.startswith(("/api/", "/_stcore/", "/static/"))
        session = self.sessions.get_session_name(HTTPConnection(scope).cookies) if self.sessions else ""
        if not is_page or (had and (had[0], had[2]) == (member.id, session) and had[1] > member.sessions_since):
            return send
        cookie = Response()
        cookie.set_cookie(
            listing_cookie_name(port),
            self.tokens().create_listing_cookie(port, member.id, session),
            max_age=VALID_DAYS * DAY_SECONDS,
            path=urlsplit(home).path,
            httponly=True,
            samesite="lax",
        )
        made = next(value for name, value in cookie.raw_headers if name == b"set-cookie")

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("set-cookie", made.decode("latin-1"))
            await send(message)

        return send_with_cookie

    def _is_own_host(self, host: str) -> bool:
        if self.access is not None and host == self.access.netloc:
            return True
        # Any port: the server may be reached through a forwarded one (ssh -L).
        name, _, port = host.partition(":")
        return name in LOOPBACK_HOSTS and (port == "" or port.isdecimal())

    def _get_origin(self, host: str) -> str:
        return self.access.origin if self.access and host == self.access.netloc else f"http://{host}"

    def _add_security_headers(self, send: Send, host: str) -> Callable[[Message], Awaitable[None]]:
        is_https = self._get_origin(host).startswith("https://")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                scheme = "wss" if is_https else "ws"
                headers.update(build_security_headers(f"{scheme}://{host if self._is_own_host(host) else ''}"))
                if is_https:
                    message["headers"] = [_mark_cookie_secure(name, value) for name, value in message["headers"]]
            await send(message)

        return send_with_headers


async def _load_member(sessions: Sessions, cookies: Mapping[str, str]) -> Member | None:
    if sessions.is_stale:
        await run_sync(sessions.refresh)
    member = sessions.find_member(cookies)
    if member is None and sessions.has_login(cookies):
        await run_sync(sessions.sign_in, cookies)
        member = sessions.find_member(cookies)
    return member


def _get_client_network(scope: Scope) -> str:
    return get_network((scope.get("client") or ("",))[0])


def _hash_authorization(headers: Headers) -> bytes:
    return hashlib.sha256(headers.get("authorization", "").encode("latin-1")).digest()


def _parse_query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1")))


def _build_not_found() -> Response:
    return PlainTextResponse("There is nothing here.\n", 404)


def _build_redirect(address: str) -> Response:
    return RedirectResponse(address, status_code=303, headers={"cache-control": "no-store"})


def _build_escaped_url(scope: Scope) -> str:
    return html.escape(_build_url_without_key(scope))


def _build_url_without_key(scope: Scope) -> str:
    # One slash at the start: "//name/" would be another server's address.
    path = "/" + (scope.get("raw_path") or b"/").decode("latin-1").lstrip("/\\")
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    query = urlencode([(name, value) for name, value in pairs if name not in ("key", "invitation")])
    return f"{path}?{query}" if query else path


def _mark_cookie_secure(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    is_open = name == b"set-cookie" and b"; secure" not in value.lower()
    return name, value + b"; Secure" if is_open else value
