"""A stand-in for the Hugging Face hub on this machine: it makes data sets and keeps what is committed to them.

    python hub_server.py FOLDER    prints its port; files are kept under FOLDER/<data set>/

Only files that a commit carries itself are taken: the hub's own storage of large files is not imitated.
"""

import base64
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOKEN = "hf_of_the_stand_in"


class Hub(BaseHTTPRequestHandler):
    """The four requests of an upload."""

    def do_POST(self):
        """Make a data set, check its card, say how each file is to be sent, and take a commit."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(401, {"error": "Invalid username or password."})
        elif self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'someone'}/{asked['name']}"
            (ROOT / name).mkdir(parents=True, exist_ok=True)
            is_private = asked.get("private") or asked.get("visibility") == "private"  # older clients, and newer ones
            (ROOT / name / ".visibility").write_text("private" if is_private else "public")
            self.answer(200, {"url": f"{self.address}/datasets/{name}", "name": name})
        elif "/preupload/" in self.path:
            files = [{"path": file["path"], "uploadMode": "regular"} for file in json.loads(body)["files"]]
            self.answer(200, {"files": [file | {"shouldIgnore": False} for file in files]})
        elif "/commit/" in self.path:
            name = self.path.removeprefix("/api/datasets/").partition("/commit/")[0]
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    file = ROOT / name / line["value"]["path"]
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(base64.b64decode(line["value"]["content"]))
            self.answer(
                200, {"success": True, "commitOid": "1", "commitUrl": f"{self.address}/datasets/{name}/commit/1"}
            )
        else:
            self.answer(200, {"errors": [], "warnings": []})

    @property
    def address(self) -> str:
        """Of this server."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, status: int, content: dict) -> None:
        """As JSON."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ROOT = Path(sys.argv[1])
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
