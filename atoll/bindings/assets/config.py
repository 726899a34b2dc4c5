"""`assets` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.assets.rules import BadAssets, HtmlHandling, NotFound, check_modes
from atoll.manifests.config_fields import ConfigField, FieldVerdict, Finding, FindingLevel, Reading, Subfield


class ConfigAssets(Struct):
    """The field `assets`."""

    directory: str = ""
    binding: str = ""
    html_handling: str = HtmlHandling.AUTO.value
    not_found_handling: str = NotFound.NONE.value
    run_worker_first: bool | list[str] = False


def read(assets: ConfigAssets, reading: Reading) -> None:
    if not assets.directory:
        hint = 'name the folder with the files: directory = "./public"'
        reading.findings.append(Finding(FindingLevel.ERROR, "assets.directory", "is missing", hint))
        return
    try:
        check_modes(assets.html_handling, assets.not_found_handling, assets.run_worker_first)
    except BadAssets as error:
        reading.findings.append(Finding(FindingLevel.ERROR, "assets", f"is not valid: {error}", error.hint))
        return
    reading.files["assets"] = assets
    if assets.binding:
        reading.bind("assets", assets.binding)


FIELDS = (
    ConfigField(
        name="assets",
        shape=ConfigAssets,
        read=read,
        inherited=True,
        subfields={
            "assets.base_path": Subfield("files are served from the root of the host", verdict=FieldVerdict.MISSING)
        },
    ),
)
