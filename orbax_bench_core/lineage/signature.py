"""Signature of `lineage.json` by an Ed25519 key, in the format of OpenSSH: `lineage.json.sig`.

The manifest has the digests of records, suite, pages and what they were made from, so that one
signature over it stands for all of them. `ssh-keygen -Y verify` reads the file too.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from orbax_bench_core.errors import Problem, UserError, command
from orbax_bench_core.files import read_at_most, read_if_there, write_atomically
from orbax_bench_core.lineage.check import Finding, Status
from orbax_bench_core.lineage.manifest import LINEAGE_FILE
from orbax_bench_core.records import RunDirectory

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE_FILE: Final = f"{LINEAGE_FILE}.sig"
NAMESPACE: Final = "orbax-bench-lineage"
"""What OpenSSH calls the purpose of a signature; one for another purpose does not count."""
_MAGIC: Final = b"SSHSIG"
_KIND: Final = b"ssh-ed25519"
_HASH: Final = b"sha512"
_BEGIN: Final = "-----BEGIN SSH SIGNATURE-----"
_END: Final = "-----END SSH SIGNATURE-----"
_LINE: Final = 70
_MOST_BYTES: Final = 2**20
"""Bytes of a signature or a file of keys at most."""
_KEYS: Final = "an OpenSSH line `ssh-ed25519 AAAA...`, as in id_ed25519.pub, or a public key as PEM"


def sign_lineage(run: RunDirectory, key_file: str) -> str:
    """Signs `lineage.json` by a private Ed25519 key, and returns the key's fingerprint."""
    key = _private_key(key_file)
    manifest = read_if_there(run.root / LINEAGE_FILE)
    if manifest is None:
        raise UserError(
            f"{run.root} has no {LINEAGE_FILE} to sign: `{command('report', run.root)}` writes it"
        )
    public = key.public_key().public_bytes_raw()
    signature = _string(_KIND) + _string(key.sign(_signed(manifest)))
    blob = b"".join(
        [
            _MAGIC,
            struct.pack(">I", 1),
            _string(_blob(public)),
            _string(NAMESPACE.encode()),
            _string(b""),
            _string(_HASH),
            _string(signature),
        ]
    )
    lines = textwrap.wrap(base64.b64encode(blob).decode(), _LINE)
    armored = "\n".join([_BEGIN, *lines, _END, ""])
    write_atomically(run.root / SIGNATURE_FILE, armored.encode())
    return _fingerprint(public)


def signature_findings(run: RunDirectory, keys_file: str | None) -> Iterator[Finding]:
    """Yields what the signature of a manifest is worth; nothing where none is there or asked for.

    Trusted are the public keys of `keys_file`; without it, whoever signed.
    """
    trusted = None if keys_file is None else _public_keys(keys_file)
    armored = read_if_there(run.root / SIGNATURE_FILE)
    if armored is None:
        if trusted is not None:
            yield Finding(what="signature", name=SIGNATURE_FILE, status="missing")
        return
    try:
        public, why = _verified(armored, read_if_there(run.root / LINEAGE_FILE) or b"")
    except ImportError:
        said = "not looked at: pip install 'orbax-bench[sign]'"
        yield Finding(what="signature", name=SIGNATURE_FILE, status="unknown", compared=said)
        return
    details = {} if public is None else {"key": _fingerprint(public)}
    status: Status = "not trusted"
    if public is None or why:
        compared = f"not trusted: {why}"
    elif trusted is None:
        status, compared = "unknown", "it holds, and whose key it is is not known: --signed-by FILE"
    elif public not in trusted:
        compared = f"not trusted: its key is not in {keys_file}"
    else:
        status, compared = "unchanged", f"signed by {trusted[public] or keys_file}"
    yield Finding(
        what="signature", name=SIGNATURE_FILE, status=status, compared=compared, details=details
    )


def _verified(armored: bytes, manifest: bytes) -> tuple[bytes | None, str]:
    """Returns the key that a signature names, and why it does not hold; empty where it does."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public, namespace, hashed, signature = _parsed(armored)
    except ValueError:
        return None, "no Ed25519 signature of OpenSSH"
    if (namespace, hashed) != (NAMESPACE.encode(), _HASH):
        wanted = f"{NAMESPACE} with {_HASH.decode()}"
        given = f"{namespace.decode(errors='replace')} with {hashed.decode(errors='replace')}"
        return public, f"made for {given}, not for {wanted}"
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _signed(manifest))
    except (InvalidSignature, ValueError):
        return public, f"{LINEAGE_FILE} is not what was signed"
    return public, ""


def _signed(manifest: bytes) -> bytes:
    """Returns the bytes over which OpenSSH signs a message."""
    parts = (NAMESPACE.encode(), b"", _HASH, hashlib.sha512(manifest).digest())
    return _MAGIC + b"".join(map(_string, parts))


def _parsed(armored: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Returns key, namespace, hash and signature of a signature file, or raises ValueError."""
    if len(armored) > _MOST_BYTES:
        raise ValueError("too large")
    lines = armored.decode("ascii").split()
    text = "".join(lines)
    begin, end = _BEGIN.replace(" ", ""), _END.replace(" ", "")
    if not (text.startswith(begin) and text.endswith(end)):
        raise ValueError("no armor")
    blob = base64.b64decode(text[len(begin) : -len(end)], validate=True)
    head = len(_MAGIC) + 4
    if blob[:head] != _MAGIC + struct.pack(">I", 1):
        raise ValueError("another version")
    key, namespace, _, hashed, signature = _strings(blob[head:])
    return _of_kind(key), namespace, hashed, _of_kind(signature)


def _of_kind(blob: bytes) -> bytes:
    """Returns the key or signature in a blob that names its algorithm."""
    kind, content = _strings(blob)
    if kind != _KIND:
        raise ValueError("another algorithm")
    return content


def _strings(blob: bytes) -> list[bytes]:
    """Returns the length-prefixed strings that a blob consists of."""
    found = []
    while blob:
        if len(blob) < 4:
            raise ValueError("torn")
        (length,) = struct.unpack(">I", blob[:4])
        content, blob = blob[4 : 4 + length], blob[4 + length :]
        if len(content) != length:
            raise ValueError("torn")
        found.append(content)
    return found


def _string(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _blob(public: bytes) -> bytes:
    return _string(_KIND) + _string(public)


def _fingerprint(public: bytes) -> str:
    """Returns the name of a key that `ssh-keygen -l` shows as well."""
    digest = hashlib.sha256(_blob(public)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _private_key(file: str) -> Ed25519PrivateKey:
    _need_cryptography("--sign")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    data = _read(file, "--sign")
    try:
        if b"OPENSSH PRIVATE KEY" in data:
            key: object = serialization.load_ssh_private_key(data, password=None)
        else:
            key = serialization.load_pem_private_key(data, password=None)
    except (TypeError, UnsupportedAlgorithm):
        remedy = "`ssh-keygen -p` takes it off a copy"
        said = f"this key has a passphrase, or another algorithm than Ed25519: {remedy}"
        raise UserError(Problem(f"--sign: {said}", file=file)) from None
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        said = "no private Ed25519 key of OpenSSH or PEM; `ssh-keygen -t ed25519` makes one"
        raise UserError(Problem(f"--sign: {said}", file=file))
    return key


def _public_keys(file: str) -> Mapping[bytes, str]:
    """Returns the keys of a file, each with what stands beside it there."""
    _need_cryptography("--signed-by")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    data = _read(file, "--signed-by")
    if b"PRIVATE KEY-----" in data:
        said = f"this is a private key, which nobody needs who checks; it takes {_KEYS}"
        raise UserError(Problem(f"--signed-by: {said}", file=file))
    found: dict[bytes, str] = {}
    if data.lstrip().startswith(b"-----BEGIN PUBLIC KEY-----"):
        try:
            key: object = serialization.load_pem_public_key(data)
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if isinstance(key, Ed25519PublicKey):
            found[key.public_bytes_raw()] = ""
    for line in data.decode(errors="replace").splitlines():
        before, kind, rest = f" {line.strip()} ".partition(f" {_KIND.decode()} ")
        if not kind or before.strip().startswith("#"):
            continue
        text, _, comment = rest.strip().partition(" ")
        try:
            found[_of_kind(base64.b64decode(text, validate=True))] = comment or before.strip()
        except (ValueError, binascii.Error):
            continue
    if not found:
        raise UserError(Problem(f"--signed-by: no Ed25519 key here; it takes {_KEYS}", file=file))
    return found


def _read(file: str, flag: str) -> bytes:
    try:
        return read_at_most(file, _MOST_BYTES)
    except OSError as error:
        said = error.strerror or str(error)
        raise UserError(Problem(f"{flag}: cannot read the key: {said}", file=file)) from None


def _need_cryptography(flag: str) -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"{flag} needs cryptography: pip install 'orbax-bench[sign]' ({error})"
        ) from None
