"""A stand-in for the Hugging Face hub on this machine: files are downloaded from it, in pieces, with their SHA-256.

    python weights_server.py FOLDER [CUT]    prints its port; FOLDER/<owner>/<repository>/<file>

FOLDER/<owner>/<repository>/card.json is what its card says. With CUT, the first download of a file ends after so many
bytes. FOLDER/.ranges lists where downloads began.
"""

import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Hub(BaseHTTPRequestHandler):
    """What a download asks for: /<owner>/<repository>/resolve/<revision>/<file>."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, with_body: bool) -> None:
        repository, _, rest = self.path.lstrip("/").partition("/resolve/")
        if repository.startswith("api/models/"):
            self.card(repository.removeprefix("api/models/"))
            return
        file = ROOT / repository / rest.partition("/")[2]
        if not file.is_file():
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = file.read_bytes()
        digest = (ROOT / ".digest").read_text() if (ROOT / ".digest").exists() else hashlib.sha256(content).hexdigest()
        asked = self.headers.get("Range", "")
        first = int(asked.removeprefix("bytes=").partition("-")[0] or 0) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("ETag", f'"{digest}"')
        self.send_header("X-Repo-Commit", "1" * 40)
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        if not with_body:
            return
        with (ROOT / ".ranges").open("a") as ranges:
            ranges.write(f"{first}\n")
        if CUT and first == 0:
            self.wfile.write(content[:CUT])
            self.close_connection = True
            return
        self.wfile.write(content[first:])

    def card(self, repository: str) -> None:
        file = ROOT / repository / "card.json"
        said = json.loads(file.read_text()) if file.is_file() else {}
        content = json.dumps({"id": repository, "cardData": said}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ROOT, CUT = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
