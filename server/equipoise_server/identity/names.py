"""Names of identities, and the one field of a certificate from which a name is read.

An identity is exactly one URI in the subject alternative names, `equipoise://<deployment>/<name>`. The
subject (common name) is never read: it is free text, and two sources of a name could contradict each other.
"""

from __future__ import annotations

import re

from cryptography import x509

from equipoise.errors import InvalidArgument, NotAuthenticated

SCHEME = "equipoise"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)


def check_name(name: str, field: str = "name") -> str:
    """Return `name` itself if it may be an identity's. Raises `InvalidArgument`, naming `field`, if not.

    Names become part of URIs, of account names and of file names on the analyst's side, so they are 1 to 63
    letters, digits, dots, hyphens and underscores of ASCII, with a letter or digit at both ends.
    """
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            field,
            "must be 1 to 63 ASCII letters, digits, '.', '-' or '_', with a letter or digit at both ends",
        )
    return name


def identity_uri(deployment: str, name: str) -> str:
    """Return the URI that stands for `name` in the certificates of `deployment`."""
    return f"{SCHEME}://{deployment}/{name}"


def certified_name(certificate: x509.Certificate, deployment: str) -> str:
    """Return the name that a certificate gives to its holder.

    Raises:
        NotAuthenticated: the certificate has no identity, an identity of another deployment, or any further
            alternative name (a host name, a second URI), which would make the identity ambiguous.
    """
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        raise NotAuthenticated("the certificate carries no identity") from None
    alternatives = list(extension.value)
    if len(alternatives) != 1 or not isinstance(alternatives[0], x509.UniformResourceIdentifier):
        raise NotAuthenticated("the certificate does not carry exactly one identity")
    prefix = identity_uri(deployment, "")
    uri = alternatives[0].value
    name = uri.removeprefix(prefix)
    if not uri.startswith(prefix) or not _NAME.fullmatch(name):
        raise NotAuthenticated("the certificate's identity is not one of this deployment")
    return name
