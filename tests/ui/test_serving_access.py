"""To whom a project is served: what `annotator serve` accepts, and what it refuses with all reasons at once."""

import pytest

from annotator.errors import AnnotatorError
from annotator.ui.access.serving_modes import parse_access

GOOD = 'client_id = "a"\nclient_secret = "b"\nserver_metadata_url = "https://login.example.org/x"\n'


@pytest.fixture
def provider(tmp_path):
    path = tmp_path / "provider.toml"
    path.write_text(GOOD)
    path.chmod(0o600)
    return path


def test_serve_without_options_listens_on_localhost_only():
    here = parse_access("local", 8501)
    assert (here.host, here.address, here.is_team, here.is_unencrypted) == (
        "127.0.0.1",
        "http://127.0.0.1:8501",
        False,
        False,
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::"])
def test_serve_host_option_beyond_localhost_requires_authentication_and_a_public_url(host):
    with pytest.raises(AnnotatorError, match="asks nobody who they are"):
        parse_access("local", 8501, host=host)
    with pytest.raises(AnnotatorError, match="--host needs --url"):
        parse_access("invitation", 8501, host=host)
    assert parse_access("invitation", 8501, host=host, url="http://192.168.1.5:8501").is_unencrypted


@pytest.mark.parametrize(
    ("url", "origin", "base", "netloc"),
    [
        ("https://Labels.example.org", "https://labels.example.org", "", "labels.example.org"),
        ("https://labels.example.org:443/", "https://labels.example.org", "", "labels.example.org"),
        ("https://example.org:8443/a/b-c/", "https://example.org:8443", "/a/b-c", "example.org:8443"),
        ("http://[::1]:8501/x", "http://[::1]:8501", "/x", "[::1]:8501"),
    ],
)
def test_serve_parses_the_public_url_as_a_browser_normalizes_it(url, origin, base, netloc):
    given = parse_access("invitation", 8501, url=url)
    assert (given.origin, given.base_path, given.netloc) == (origin, base, netloc)


@pytest.mark.parametrize(
    "url",
    [
        "labels.example.org",
        "ftp://example.org",
        "https://",
        "https://example.org/?a=b",
        "https://example.org/#x",
        "https://user:secret@example.org/",
        "https://example.org/a b",
        "https://example.org/a'onload='x",
        "https://example.org//evil.example",
        "https://example.org:99999/",
        "https://[::1",
    ],
)
def test_serve_refuses_an_invalid_public_url(url):
    with pytest.raises(AnnotatorError, match="is no address like"):
        parse_access("invitation", 8501, url=url)


def test_serve_access_error_lists_all_invalid_options_together_without_secrets(tmp_path):
    path = tmp_path / "provider.toml"
    path.write_text('client_id = "a"\nsecret = "b"\nserver_metadata_url = "http://login.example.org"\n')
    path.chmod(0o644)
    with pytest.raises(AnnotatorError) as refused:
        parse_access("oidc", 8501, "nonsense", "http://example.org", "10.0.0.300,x", path)
    said = str(refused.value)
    assert all(
        part in said
        for part in (
            "--host 'nonsense'",
            "must begin with https://, because login providers",
            "--behind '10.0.0.300'",
            "--behind 'x'",
            "others on this machine can read the secret",
            "does not say client_secret",
            "secret is not known there",
            "server_metadata_url must begin with https://",
        )
    )
    assert "b" not in said.split("provider.toml: it does")[-1].split(), "and no secret is repeated"


def test_serve_reads_the_oidc_provider_file_and_refuses_a_damaged_or_missing_one(provider):
    given = parse_access("oidc", 8501, url="https://example.org", provider=provider)
    assert given.provider["client_id"] == "a" and given.is_https
    for text in ("", "client_id = ", "\x00", "client_id = 1\n"):
        provider.write_text(text)
        with pytest.raises(AnnotatorError, match=r"provider\.toml"):
            parse_access("oidc", 8501, url="https://example.org", provider=provider)
    provider.unlink()
    with pytest.raises(AnnotatorError, match="No such file"):
        parse_access("oidc", 8501, url="https://example.org", provider=provider)
    with pytest.raises(AnnotatorError, match="needs --oidc FILE"):
        parse_access("oidc", 8501, url="https://example.org")


@pytest.mark.parametrize("options", [{"url": "https://x.example"}, {"trusted_proxies": "10.0.0.1"}])
def test_serve_without_authentication_refuses_options_that_need_it(options):
    with pytest.raises(AnnotatorError, match="needs --auth invitation or oidc"):
        parse_access("local", 8501, **options)
