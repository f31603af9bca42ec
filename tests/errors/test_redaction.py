"""Credentials in addresses, which nobody is shown."""

import pytest

from orbax_bench_core.errors import UserError, has_credentials, redacted


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("https://user:planted@h/x", "https://***@h/x"),
        ("x @ git+https://planted@github.com/a/b@v1", "x @ git+https://***@github.com/a/b@v1"),
        ("ssh://git:planted@h/x", "ssh://***@h/x"),
        ("https://h/x?token=planted&y=1", "https://h/x?token=***&y=1"),
        ("https://h/k?X-Amz-Signature=planted", "https://h/k?X-Amz-Signature=***"),
        ("https://h/k?a=1&X-Goog-Credential=planted", "https://h/k?a=1&X-Goog-Credential=***"),
        ("403 for https://h/k?sig=planted, gave up", "403 for https://h/k?sig=***"),
    ],
)
def test_they_are_left_out(given, shown):
    assert redacted(given).startswith(shown)
    assert "planted" not in redacted(given)
    assert redacted(redacted(given)) == redacted(given)
    assert "planted" not in str(UserError(f"cannot reach {given}"))


@pytest.mark.parametrize(
    "text",
    [
        "git+ssh://git@github.com/a/b",
        "https://${TOKEN}@h/x",
        "https://${USER}:${PASSWORD}@h/x",
        "https://h/x?token=${TOKEN}",
        "https://h/a@b",
        "gs://bucket/a@b?x=1",
        "token=plain, and no address",
    ],
)
def test_what_is_none_stays(text):
    assert redacted(text) == text
    assert not has_credentials(text)
