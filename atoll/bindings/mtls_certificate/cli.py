"""`atoll mtls-certificate`: client certificates that workers present to servers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, fail, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client

AT = "/api/mtls-certificates"
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group("mtls-certificate")
def mtls_certificate() -> None:
    """Keep client certificates that workers present to servers with `env.NAME.fetch()`.

    \b
    Examples:
      atoll mtls-certificate upload --name bank --cert bank.pem --key bank.key
      atoll mtls-certificate list
      atoll mtls-certificate delete bank --yes
    """


@mtls_certificate.command("upload")
@click.option("--cert", required=True, type=FILE, metavar="FILE", help="The certificate, in PEM, and its chain.")
@click.option("--key", required=True, type=FILE, metavar="FILE", help="Its private key, in PEM, without a password.")
@click.option("--name", metavar="NAME", help="Its name.  [default: that of the certificate's file]")
@node_options
@json_option
def upload(client: Client, cert: Path, key: Path, name: str | None, as_json: bool) -> None:
    """Send a certificate and its key. They are stored sealed."""
    name = name or cert.stem
    try:
        body = {"name": name, "certificate": cert.read_text("utf-8"), "private_key": key.read_text("utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        fail(f"the certificate or its key cannot be read: {error}", "give files in PEM")
    made = client.post(AT, body)
    done(f"stored {name}: bind it with `certificate_id` {name} of `mtls_certificates`", as_json, **made)


@mtls_certificate.command("list")
@node_options
@json_option
def list_certificates(client: Client, as_json: bool) -> None:
    """List the certificates, without their keys."""
    found = client.all(AT, "certificates")
    if as_json:
        show_json(found)
        return
    rows = [(each["name"], each["issuer"], each["expires_at"]) for each in found]
    show_table(("name", "issuer", "expires"), rows, "no certificates yet: `atoll mtls-certificate upload` sends one")


@mtls_certificate.command("delete")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def delete(client: Client, name: str, yes: bool, as_json: bool) -> None:
    """Delete a certificate. Workers that use it get an error."""
    from atoll.cli.client import segment

    ask_first(f"Delete the client certificate {name} on {client.target.api}?", yes)
    client.delete(f"{AT}/{segment(name)}")
    done(f"deleted {name}", as_json, deleted=name)
