"""Credentials, which nobody is shown."""

import pytest

from orbax_bench_core.errors import UserError, has_credentials, redacted, redacted_deeply
from orbax_bench_core.records import ErrorInfo


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
        "Authorization: Bearer planted",
        "authorization: Basic cGxhbnRlZDpwbGFudGVk planted",
        "{'Authorization': 'Bearer planted'}",
        '{"authorization": "planted"}',
        "Proxy-Authorization: planted",
        "Cookie: session=planted; other=planted",
        "invalid Bearer planted1234",
        "token=planted",
        "refresh_token=planted&x=1",
        "token = 'planted'",
        "password: planted",
        "password=planted",
        "PGPASSWORD=planted psql",
        "passphrase: 'planted planted'",
        "AWS_SECRET_ACCESS_KEY=planted",
        "AWS_SESSION_TOKEN='planted'",
        "client_secret=planted",
        "api_key: planted",
        "apikey=planted",
        "https://h/x#access_token=planted&y=1",
        "https://h/x#planted_is=1&token=planted".replace("planted_is", "state"),
        "//user:planted@host/x",
        "cannot reach '//user:planted@host'",
        "https://hooks.slack.com/services/planted/planted",
        "https://discord.com/api/webhooks/planted/planted",
        "https://x.webhook.office.com/webhookb2/planted",
        "https://h/hooks/planted: 404",
        "{'user': 'u', 'password': 'planted'}",
        '{"api_key": "planted", "a": {"token": "planted"}}',
        "{'secret': b'planted'}",
        "headers={'X-Api-Key': 'planted'}",
        "--override benchmarks.0.options.token=planted",
        "--override storage.password='planted planted': unknown key",
        "--api-key planted --verbose",
        "-----BEGIN RSA PRIVATE KEY-----\nplanted\nplanted\n-----END RSA PRIVATE KEY-----",
        "mysql://user:planted@h/db",
    ],
)
def test_no_form_of_a_secret_is_kept_of_what_others_say(text):
    assert "planted" not in redacted(text)
    assert redacted(redacted(text)) == redacted(text)
    assert "planted" not in str(UserError(text))
    assert "planted" not in str(redacted_deeply({"a": [text]}))
    assert "planted" not in ErrorInfo(type="E", message=text, traceback=text).model_dump_json()


@pytest.mark.parametrize(
    "text",
    [
        f"AKIA{'A1' * 8}",
        f"ghp_{'a1' * 18}",
        f"hf_{'a1' * 17}",
        f"sk-proj-{'a1' * 20}",
        f"xoxb-{'12' * 10}-ab",
        f"AIza{'a1' * 17}b",
        f"eyJ{'a1' * 8}.eyJ{'a1' * 8}.{'a1' * 8}",
    ],
)
def test_a_secret_that_is_known_by_how_it_begins_is_left_out(text):
    assert redacted(f"got {text}, no") == "got ***, no"


def test_a_mapping_keeps_no_secret_that_its_key_names():
    given = {"env": {"MY_TOKEN": "planted", "num_tokens": "5", "token": ""}}
    assert redacted_deeply(given) == {"env": {"MY_TOKEN": "***", "num_tokens": "5", "token": ""}}


@pytest.mark.parametrize(
    "text",
    [
        "git+ssh://git@github.com/a/b",
        "https://${TOKEN}@h/x",
        "https://${USER}:${PASSWORD}@h/x",
        "https://h/x?token=${TOKEN}",
        "https://h/a@b",
        "gs://bucket/a@b?x=1",
        "wrong token, and no secret",
        "a token of 64 characters: nobody knows it",
        "max_tokens=8, num_tokens: 5, tokens_per_s=3",
        "key=value, cache_key: 3",
        "checkpoint_config.spec.w: this key is required",
        "use_signature=true, password=None",
        "bearer of bad news, basic block",
        "a // b @ c, http://h//a:1, gs://b/a:b@c",
        "secrets.token_hex(32), the secretary",
    ],
)
def test_what_is_none_stays(text):
    assert redacted(text) == text
    assert not has_credentials(text)
