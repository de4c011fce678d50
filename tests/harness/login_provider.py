"""A login provider that can be told to lie: what it says of a person is signed by it, and may be wrong.

A well-behaved one is oidc-provider-mock, as a process of its own. This one is for tokens that no sane provider issues.
"""

import base64
import hmac
import json
import re
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import uvicorn
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route

from harness.served import free_port, until


class Provider:
    """Says that everybody is subject "1", called Ann. `lies` replace claims; `key` signs, be it published or not;
    `alg` is RS256, or "none" for tokens without a signature, or HS256, with the public key as if it were a secret.
    `error` is what it sends people back with, "" for a code; `user_info` is what its endpoint of that name says."""

    def __init__(self) -> None:
        self.address = f"http://127.0.0.1:{free_port()}"
        self.published = RSAKey.generate_key(2048, {"kid": "1"})
        self.key = self.published
        self.alg = "RS256"
        self.lies: dict[str, Any] = {}
        self.nonce = self.error = ""
        self.user_info: dict[str, Any] = {}
        routes = [
            Route("/.well-known/openid-configuration", self._about),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
            Route("/keys", self._keys),
            Route("/me", self._me),
        ]
        self.app = Starlette(routes=routes)

    async def _about(self, request: Request) -> JSONResponse:
        places = {
            "authorization_endpoint": "authorize",
            "token_endpoint": "token",
            "jwks_uri": "keys",
            "userinfo_endpoint": "me",
        }
        about = {name: f"{self.address}/{path}" for name, path in places.items()}
        return JSONResponse({"issuer": self.address, "id_token_signing_alg_values_supported": ["RS256"], **about})

    async def _authorize(self, request: Request) -> RedirectResponse:
        asked = request.query_params
        self.nonce = asked["nonce"]
        answer = {"error": self.error} if self.error else {"code": "1"}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer | {'state': asked['state']})}")

    async def _token(self, request: Request) -> JSONResponse:
        now = int(time.time())
        claims = {"iss": self.address, "sub": "1", "name": "Ann", "aud": "annotator", "nonce": self.nonce}
        claims |= {"iat": now, "exp": now + 60} | self.lies
        token = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.key)
        if self.alg != "RS256":
            head = _encoded(json.dumps({"alg": self.alg, "typ": "JWT", "kid": "1"}).encode())
            signed = f"{head}.{token.split('.')[1]}"
            mac = hmac.digest(self.published.as_pem(private=False), signed.encode(), "sha256")
            token = f"{signed}.{_encoded(mac) if self.alg == 'HS256' else ''}"
        return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": token})

    async def _keys(self, request: Request) -> JSONResponse:
        return JSONResponse(KeySet([self.published]).as_dict(private=False))

    async def _me(self, request: Request) -> JSONResponse:
        assert request.headers["authorization"] == "Bearer x"
        return JSONResponse(self.user_info)


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def written(folder: Path, metadata: str) -> Path:
    """The file that tells the app of the provider whose metadata are at this address."""
    about = folder / "provider.toml"
    about.write_text(f'client_id = "annotator"\nclient_secret = "s"\nserver_metadata_url = "{metadata}"\n')
    about.chmod(0o600)
    return about


@contextmanager
def providing() -> Iterator[Provider]:
    """A provider that answers for as long as the block lasts."""
    provider = Provider()
    port = int(provider.address.rpartition(":")[2])
    server = uvicorn.Server(uvicorn.Config(provider.app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started, 30)
    try:
        yield provider
    finally:
        server.should_exit = True
        thread.join(10)


def signed_in(client: httpx.Client, address: str) -> str:
    """Where somebody ends who presses Sign in, and as whom; "" when they are not signed in."""
    answer = client.get(f"{address}/sign-in")
    known = re.search("You are known here as <b>(.*?)</b>", client.get(f"{address}/").text)
    assert answer.url.host == "localhost"
    return known.group(1) if known else ""


def is_up(address: str) -> bool:
    """Whether it answers; whoever has signed its certificate."""
    with suppress(httpx.HTTPError, ssl.SSLError):
        return httpx.get(address, verify=False, timeout=5).status_code == 200
    return False
