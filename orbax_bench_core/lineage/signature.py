"""Signature of `lineage.json` by OpenSSH's `ssh-keygen`: `lineage.json.sig`.

The manifest has the digests of records, suite, pages and what they were made from, so that one
signature over it stands for all of them. Who may sign, for what and until when, is for `ssh-keygen
-Y verify` to say.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Final

from orbax_bench_core.errors import Problem, UserError, command, shortened
from orbax_bench_core.files import read_at_most, read_if_there, scratch_folder, write_atomically
from orbax_bench_core.lineage.check import Finding, Status
from orbax_bench_core.lineage.manifest import LINEAGE_FILE
from orbax_bench_core.records import RunDirectory

SIGNATURE_FILE: Final = f"{LINEAGE_FILE}.sig"
NAMESPACE: Final = "orbax-bench-lineage"
"""What OpenSSH calls the purpose of a signature; one for another purpose does not count."""
_PROGRAM: Final = "ssh-keygen"
_LACKING: Final = f"{_PROGRAM} of OpenSSH 8.2 or later is not on PATH: install openssh-client"
_WITHIN_S: Final = 60.0
_MOST_BYTES: Final = 2**20
"""Bytes of a signature or a file of keys at most."""
_KEY: Final = re.compile(
    r"(?P<before>.*?)(?P<key>\b(?:ssh|ecdsa|sk)-[\w.@-]+\s+AAAA[\w+/=]+)(?P<comment>.*)"
)
_FINGERPRINT: Final = re.compile(r"\bSHA256:\S+")
_SAID_OF: Final = {
    "incorrect signature": f"{LINEAGE_FILE} is not what was signed",
    "namespace does not match": f"made for another purpose than {NAMESPACE}",
}
"""What `ssh-keygen` says of a signature that does not hold, and what it means here."""


def sign_lineage(run: RunDirectory, key_file: str) -> str:
    """Signs `lineage.json` by a key of OpenSSH, and returns the key's fingerprint.

    Raises:
        UserError: `ssh-keygen` is missing, or does not sign with this key.
    """
    if shutil.which(_PROGRAM) is None:
        raise UserError(f"--sign: {_LACKING}")
    manifest = read_if_there(run.root / LINEAGE_FILE)
    if manifest is None:
        raise UserError(
            f"{run.root} has no {LINEAGE_FILE} to sign: `{command('report', run.root)}` writes it"
        )
    done = _ssh_keygen("sign", "-f", key_file, given=manifest)
    if done.returncode:
        remedy = (
            "give a private key without a passphrase that nobody else may read (chmod 600), or a "
            "public key whose private one ssh-agent has"
        )
        raise UserError(Problem(f"--sign: {_said(done)}; {remedy}", file=key_file))
    fingerprint, why = _looked_at(done.stdout, manifest)
    if why:
        raise UserError(Problem(f"--sign: the signature does not hold: {why}", file=key_file))
    write_atomically(run.root / SIGNATURE_FILE, done.stdout)
    return fingerprint


def signature_findings(run: RunDirectory, keys_file: str | None) -> Iterator[Finding]:
    """Yields what the signature of a manifest is worth; nothing if there is none, and none asked.

    Trusted are the lines of `keys_file` that `ssh-keygen -Y verify` accepts; without a file, any
    signer is reported as unknown.

    Raises:
        UserError: The file holds no key, or `ssh-keygen`, which a file needs, is missing.
    """
    trusted = None if keys_file is None else _Signers(keys_file)
    armored = read_if_there(run.root / SIGNATURE_FILE)
    if armored is None:
        if trusted is not None:
            yield Finding(what="signature", name=SIGNATURE_FILE, status="missing")
        return
    details: dict[str, str] = {}
    status: Status = "unknown"
    if shutil.which(_PROGRAM) is None:
        compared = f"not looked at: {_LACKING}"
    else:
        manifest = read_if_there(run.root / LINEAGE_FILE) or b""
        fingerprint, why = _looked_at(armored, manifest)
        details = {"key": fingerprint} if fingerprint else {}
        signer = ""
        if not why and trusted is not None:
            signer, why = trusted.signer(armored, manifest)
        if why:
            status, compared = "not trusted", f"not trusted: {why}"
        elif trusted is None:
            compared = "it holds, and whose key it is is not known: --signed-by FILE"
        else:
            status, compared = "unchanged", f"signed by {signer}"
    yield Finding(
        what="signature", name=SIGNATURE_FILE, status=status, compared=compared, details=details
    )


def _looked_at(armored: bytes, manifest: bytes) -> tuple[str, str]:
    """Returns the fingerprint of the key of a signature, and why it does not hold, if so."""
    if len(armored) > _MOST_BYTES:
        return "", "no signature of OpenSSH"
    with scratch_folder("orbax-bench-signature") as folder:
        (folder / "signature").write_bytes(armored)
        done = _ssh_keygen("check-novalidate", "-s", str(folder / "signature"), given=manifest)
    found = _FINGERPRINT.search(done.stdout.decode(errors="replace"))
    if done.returncode == 0 and found is not None:
        return found.group(), ""
    said = _said(done)
    known = (meaning for words, meaning in _SAID_OF.items() if words in said)
    return "", next(known, f"no signature of OpenSSH ({said})")


class _Signers:
    """Those whose signature counts: a file of allowed signers, or of public keys."""

    def __init__(self, file: str) -> None:
        """Reads a file; a line that is a public key alone may sign for our purpose."""
        self._file = file
        try:
            text = read_at_most(file, _MOST_BYTES).decode(errors="replace")
        except OSError as error:
            said = error.strerror or str(error)
            raise self._refused(f"cannot read the keys: {said}") from None
        if "PRIVATE KEY-----" in text:
            raise self._refused("this is a private key, which is not needed to check a signature")
        self._names: dict[str, str] = {}
        self._lines: list[str] = []
        for number, line in enumerate(text.splitlines(), 1):
            found = None if line.lstrip().startswith("#") else _KEY.fullmatch(line)
            if found is None:
                self._lines.append(line)
            elif found["before"].strip():
                self._lines.append(line)
                principals = line.split(maxsplit=1)[0].strip('"').split(",")
                self._names |= {one: one for one in principals if not one.startswith("!")}
            else:
                own = f"{NAMESPACE}-{number}"
                self._names[own] = found["comment"].strip() or file
                self._lines.append(f'{own} namespaces="{NAMESPACE}" {found["key"]}')
        if not self._names:
            raise self._refused("no public key of OpenSSH here")
        if shutil.which(_PROGRAM) is None:
            raise UserError(f"--signed-by: {_LACKING}")

    def signer(self, armored: bytes, manifest: bytes) -> tuple[str, str]:
        """Returns who signed a manifest, and why no line allows it, if so."""
        with scratch_folder("orbax-bench-signature") as folder:
            allowed, signature = folder / "allowed", folder / "signature"
            allowed.write_text("\n".join([*self._lines, ""]))
            signature.write_bytes(armored)
            why: dict[str, None] = {}
            for name, shown in self._names.items():
                files = ("-f", str(allowed), "-s", str(signature))
                done = _ssh_keygen("verify", "-I", name, *files, given=manifest)
                if done.returncode == 0:
                    return shown, ""
                why |= {
                    line.replace(f"{allowed}:", "line "): None
                    for line in _lines(done)
                    if line.startswith(f"{allowed}:")
                }
        said = f": {shortened('; '.join(why))}" if why else ""
        return "", f"no line of {self._file} allows its key{said}"

    def _refused(self, why: str) -> UserError:
        takes = "a line of id_ed25519.pub per key, or a list of allowed signers of OpenSSH"
        return UserError(Problem(f"--signed-by: {why}; it takes {takes}", file=self._file))


def _ssh_keygen(does: str, *arguments: str, given: bytes) -> subprocess.CompletedProcess[bytes]:
    """Runs `ssh-keygen -Y`, which asks nobody for a passphrase."""
    try:
        return subprocess.run(
            [_PROGRAM, "-Y", does, "-n", NAMESPACE, *arguments],
            input=given,
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"},
            start_new_session=True,  # without a terminal
            timeout=_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"{_PROGRAM} -Y {does} did not end within {_WITHIN_S:g} s") from None


def _lines(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Returns the message of `ssh-keygen`'s error, without its frame and its question."""
    text = done.stderr.decode(errors="replace").replace("Enter passphrase: ", "")
    return [line for line in text.splitlines() if line and not line.startswith(("@", "Signing "))]


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return shortened("; ".join(_lines(done)) or f"{_PROGRAM} ended with code {done.returncode}")
