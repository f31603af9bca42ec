"""Credentials, which nobody is shown."""

import ast
from pathlib import Path

import pytest

from orbax_bench_core.errors import UserError, has_credentials, redacted, redacted_deeply
from orbax_bench_core.records import ErrorInfo

ROOT = Path(__file__).parents[2]


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
        "psql user:planted1@db.internal:5432",
        "curl -u user:planted1 host",
        "machine h login u password planted",
        "export MYSQL_PWD=planted DB_PASS=planted",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=planted==;EndpointSuffix=x",
        "Endpoint=sb://h/;SharedAccessKeyName=k;SharedAccessKey=planted=",
        "sv=2024-11-04&se=2026-01-01&sr=b&sig=planted%3D",
        "access_token%3Dplanted%26a",
        "x-amz-security-token: planted",
        "X-Vault-Token: planted",
        "PRIVATE-TOKEN: planted",
        "[('Authorization', 'Bearer planted'), ('x-api-key', 'planted')]",
        'log: "{\\"token\\": \\"planted\\"}"',
        "<AccessKeyId>planted</AccessKeyId><sessionToken>planted</sessionToken>",
        '{"auths": {"registry": {"auth": "planted"}}}',
        "//registry/:_auth=planted",
        "    token: planted1-planted-planted",
        "    client-key-data: planted",
        "- name: DB_PASSWORD\n  value: planted",
        '{"name": "DB_PASSWORD", "value": "planted"}',
        "fs.s3a.secret.key=planted",
        "--token \\\n  planted",
        '"token":\n  "planted"',
        "Authorization: Bearer\n  planted",
        "Authorization: Bearer planted1planted1planted1\nplanted1planted1planted1\nfine",
        "got eyJhbGciOi8planted8.planted8planted8.planted8\nplanted8planted8planted8",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nplanted\n-----END PGP PRIVATE KEY BLOCK-----",
        '"private_key": "-----BEGIN PRIVATE KEY-----\\nplanted\\n-----END PRIVATE KEY-----\\n"',
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
        f"ya29.{'a1' * 20}",
        f"1//0{'a1' * 20}",
        f"npm_{'a1' * 18}",
        f"pypi-AgEI{'a1' * 20}",
        f"hvs.{'a1' * 12}",
        f"sk_live_{'a1' * 12}",
        f"dckr_pat_{'a1' * 12}",
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
        "FSSPEC_GCS_TOKEN=anon",
        "export ORBAX_BENCH_TOKEN=$(openssl rand -hex 32)",
        "curl --token $TOKEN, -H 'Authorization: Bearer $TOKEN'",
        "token: the next word, secret: none",
        "OLDPWD=/home/me, pass=3, passed=4, author: me, signature: (a: int) -> int",
        "12:30:45 a@b: the key: value pairs, keys: 3, key-value: x, primary key = 3",
    ],
)
def test_what_is_none_stays(text):
    assert redacted(text) == text
    assert not has_credentials(text)


def test_what_we_say_ourselves_stays():
    """Advice names variables of credentials, and what to set them to."""
    mangled = [
        f"{file.relative_to(ROOT)}: {text}"
        for folder in ("orbax_bench_core", "components", "pipelines", "airflow_pipelines")
        for file in (ROOT / folder).rglob("*.py")
        for text in said_by(file)
        if redacted(text) != text
    ]
    assert mangled == []


def said_by(file):
    """Yields the literals of a module that are no docstrings, with a name for each field."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (part.value for part in node.values)
            yield "".join(part if isinstance(part, str) else "NAME" for part in parts)
        elif isinstance(getattr(node, "value", None), str) and id(node) not in docstrings:
            yield node.value
