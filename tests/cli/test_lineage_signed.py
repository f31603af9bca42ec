"""`orbax-bench lineage --sign` and `--signed-by`, with keys and signatures of OpenSSH's own."""

import json
import shutil
import subprocess

import pytest

from orbax_bench_core.publishing import publish

NAMESPACE = "orbax-bench-lineage"


def ssh_keygen(*arguments, **given):
    """Runs OpenSSH's program, or skips the test where it is not installed."""
    program = shutil.which("ssh-keygen")
    if program is None:
        pytest.skip("ssh-keygen is not installed")
    command = [program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **given)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Two keys of OpenSSH: ours, and one of somebody else."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "other"):
        made = ssh_keygen(
            "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@team", "-f", folder / name
        )
        assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def run(make_run, make_record):
    made = make_run([make_record()])
    publish(made)
    return made


@pytest.fixture
def signed(orbax_bench, run, keys):
    outcome = orbax_bench("lineage", run.root, "--sign", keys / "ours")
    assert (outcome.code, outcome.err) == (0, "")
    return run


@pytest.fixture
def signature(orbax_bench):
    """Returns the exit code and what was found of the signature."""

    def ask(given, *flags):
        outcome = orbax_bench("lineage", given, "--json", *flags)
        said = json.loads(outcome.out)
        (found,) = [each for each in said["findings"] if each["what"] == "signature"]
        return outcome.code, found["status"], found["compared"]

    return ask


def test_a_signature_by_a_trusted_key_holds(signature, orbax_bench, signed, keys):
    assert signature(signed.root, "--signed-by", keys / "ours.pub") == (
        0,
        "unchanged",
        "signed by ours@team",
    )
    fingerprint = ssh_keygen("-l", "-f", keys / "ours.pub").stdout.split()[1]
    shown = orbax_bench("lineage", signed.root, "--signed-by", keys / "ours.pub", "--details").out
    assert "signed by ours@team" in shown
    assert f"key {fingerprint}" in shown.replace("\n", "")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("us@team {ours}", ""),
        ("us@team,you@team {ours}", ""),
        ("*@team {ours}", ""),
        ('us@team namespaces="orbax-*" {ours}', ""),
        ('us@team namespaces="git" {ours}\nme@team {ours}', ""),
        ('us@team valid-before="20200101" {ours}', "line 1: key has expired"),
        ('us@team valid-after="29990101" {ours}', "line 1: key is not yet valid"),
        ('us@team namespaces="git" {ours}', "line 1: key is not permitted for use in"),
        ("us@team cert-authority {ours}", ""),
        ("@revoked us@team {ours}", "line 1: "),
        ("us@team {other}", ""),
        ("{other}", ""),
    ],
)
def test_a_line_counts_if_openssh_accepts_it(signature, signed, keys, tmp_path, line, why):
    public = {name: (keys / f"{name}.pub").read_text().strip() for name in ("ours", "other")}
    allowed = tmp_path / "allowed"
    allowed.write_text(f"# who may sign\n\n{line.format(**public)}\n")
    code, status, compared = signature(signed.root, "--signed-by", allowed)
    accepted = [
        ssh_keygen(
            *("-Y", "verify", "-n", NAMESPACE, "-I", name, "-f", allowed),
            *("-s", signed.root / "lineage.json.sig"),
            input=(signed.root / "lineage.json").read_text(),
        ).returncode
        == 0
        for name in ("us@team", "me@team")
    ]
    assert (code, status) == ((0, "unchanged") if any(accepted) else (1, "not trusted"))
    assert why.replace("line 1", "line 3") in compared


@pytest.mark.parametrize("of", ["lineage.json", "another purpose"])
def test_one_that_openssh_made_is_read(signature, run, keys, of):
    namespace = NAMESPACE if of == "lineage.json" else "file"
    done = ssh_keygen("-Y", "sign", "-n", namespace, "-f", keys / "ours", run.root / "lineage.json")
    assert done.returncode == 0, done.stderr
    code, status, compared = signature(run.root, "--signed-by", keys / "ours.pub")
    if of == "lineage.json":
        assert (code, status) == (0, "unchanged")
    else:
        assert (code, status) == (1, "not trusted")
        assert compared == f"not trusted: made for another purpose than {NAMESPACE}"


def test_without_keys_nobody_knows_whose_it_is(signature, signed):
    code, status, compared = signature(signed.root)
    assert (code, status) == (0, "unknown")
    assert "--signed-by" in compared


def test_another_key_is_not_trusted(signature, signed, keys):
    code, status, compared = signature(signed.root, "--signed-by", keys / "other.pub")
    assert (code, status) == (1, "not trusted")
    assert compared == f"not trusted: no line of {keys / 'other.pub'} allows its key"


def test_none_at_all_is_missing_where_one_is_required(signature, run, keys):
    assert signature(run.root, "--signed-by", keys / "ours.pub")[:2] == (1, "missing")


def test_a_verdict_whose_digest_was_edited_too_is_found_by_the_signature(signature, signed, keys):
    """Digests alone do not help against somebody who writes into the run directory."""
    from orbax_bench_core.lineage import file_digest

    (signed.root / "report.html").write_text("PASS")
    manifest = signed.root / "lineage.json"
    content = json.loads(manifest.read_text())
    content["made"]["report.html"]["digest"] = file_digest(str(signed.root / "report.html"))
    manifest.write_text(json.dumps(content, indent=1))
    wanted = (1, "not trusted", "not trusted: lineage.json is not what was signed")
    assert signature(signed.root, "--signed-by", keys / "ours.pub") == wanted
    assert signature(signed.root) == wanted
    assert signature(signed.root / "report.html") == wanted


@pytest.mark.parametrize(
    "torn", [b"", b"PASS", b"-----BEGIN SSH SIGNATURE-----\nAAAA", bytes(2**21)]
)
def test_a_torn_signature_is_not_trusted(signature, signed, torn):
    (signed.root / "lineage.json.sig").write_bytes(torn)
    assert signature(signed.root)[:2] == (1, "not trusted")


def test_what_has_changed_is_not_signed(orbax_bench, run, keys):
    (run.root / "report.html").write_text("PASS")
    outcome = orbax_bench("lineage", run.root, "--sign", keys / "ours")
    assert (outcome.code, outcome.err) == (1, "error: not signed, for not all is as it was noted\n")
    assert not (run.root / "lineage.json.sig").exists()


def test_a_report_that_is_made_again_is_signed_again(orbax_bench, signature, signed, keys):
    (signed.root / "lineage.json").write_text(
        json.dumps(json.loads((signed.root / "lineage.json").read_text()))
    )
    assert signature(signed.root)[0] == 1
    assert orbax_bench("lineage", signed.root, "--sign", keys / "ours").code == 0
    assert signature(signed.root, "--signed-by", keys / "ours.pub")[0] == 0


def refused(orbax_bench, *arguments):
    outcome = orbax_bench("lineage", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    return outcome.err


def test_keys_that_are_none_are_refused(orbax_bench, run, keys, tmp_path):
    words = tmp_path / "words"
    words.write_text("ssh-rsa AAAA\n")
    words.chmod(0o600)
    assert "--sign: Couldn't load" in refused(orbax_bench, run.root, "--sign", words)
    assert "no public key of OpenSSH here" in refused(orbax_bench, run.root, "--signed-by", words)
    private = refused(orbax_bench, run.root, "--signed-by", keys / "ours")
    assert "this is a private key" in private
    missing = refused(orbax_bench, run.root, "--sign", tmp_path / "none")
    assert "No such file" in missing
    locked = tmp_path / "locked"
    ssh_keygen("-q", "-t", "ed25519", "-N", "secret", "-f", locked)
    assert "incorrect passphrase" in refused(orbax_bench, run.root, "--sign", locked)
    shutil.copy(keys / "ours", tmp_path / "open")
    (tmp_path / "open").chmod(0o644)
    said = refused(orbax_bench, run.root, "--sign", tmp_path / "open")
    assert "Permissions 0644" in said
    assert "chmod 600" in said
    assert not (run.root / "lineage.json.sig").exists()


def test_without_openssh_one_sentence_names_it(orbax_bench, signed, keys, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = "ssh-keygen of OpenSSH 8.2 or later is not on PATH: install openssh-client"
    assert f"not looked at: {said}" in orbax_bench("lineage", signed.root).out
    for flag, key in (("--signed-by", "ours.pub"), ("--sign", "ours")):
        assert refused(orbax_bench, signed.root, flag, keys / key) == f"error: {flag}: {said}\n"
