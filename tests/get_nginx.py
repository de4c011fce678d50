"""The other reverse proxy of docs/deploy.md: the nginx that is there, or else the distribution's package.

Run by `make test`, and by the tests themselves for whoever starts pytest alone.
"""

import datetime
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from get_chromium import package

from annotator.errors import AnnotatorError

DEPLOY = Path(__file__).resolve().parent.parent / "docs" / "deploy.md"
CONFIG = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    {temporary}
    server {{
        listen 127.0.0.1:{tls} ssl;
        server_name localhost;
        ssl_certificate {folder}/localhost.pem;
        ssl_certificate_key {folder}/localhost.pem;
        {location}
    }}
}}
"""
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def get_nginx() -> str:
    """The path of an nginx. Raises AnnotatorError, saying what was tried, where there is none and none can be got."""
    tried = "" if _nginx() else package("nginx-light" if shutil.which("apt-get") else "nginx")
    if path := _nginx():
        return path
    raise AnnotatorError(f"There is no nginx, which a test of the login needs. Tried to get it, in vain:\n{tried}")


def _nginx() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")


@contextmanager
def nginx(folder: Path, port: int, tls: int) -> Iterator[subprocess.Popen]:
    """nginx with what docs/deploy.md says: https://localhost:tls, before the app on `port`; its files are in folder."""
    location = re.search(r"^location /annotator/ \{.*?^\}", DEPLOY.read_text(), re.DOTALL | re.MULTILINE)
    assert location and "127.0.0.1:8501" in location.group()
    temporary = "\n    ".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY)
    written = {"folder": folder, "tls": tls, "temporary": temporary}
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(**written, location=location.group().replace(":8501", f":{port}")))
    _certificate(folder / "localhost.pem")
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen([get_nginx(), "-p", str(folder), "-c", str(config)], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(120)


def _certificate(path: Path) -> None:
    """A certificate of localhost, signed by its own key, which is in the same file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name.from_rfc4514_string("CN=localhost")
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    of_key = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(of_key + made.public_bytes(pem))


if __name__ == "__main__":
    try:
        print("Another reverse proxy for the tests:", get_nginx())
    except AnnotatorError as error:
        sys.exit(f"Error: {error}")
