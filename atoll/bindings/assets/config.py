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


class ConfigSite(Struct):
    """The field `site`: Workers Sites, which assets replaced."""

    bucket: str


def read_site(site: ConfigSite, reading: Reading) -> None:
    """The files are assets that only the worker reads, through a namespace like KV."""
    if "assets" in reading.files:
        hint = "remove `site`: assets replaced it"
        reading.findings.append(Finding(FindingLevel.ERROR, "site", "and `assets` cannot be used together", hint))
        return
    none = HtmlHandling.NONE.value
    reading.files["assets"] = ConfigAssets(directory=site.bucket, html_handling=none, run_worker_first=True)
    reading.bind("assets", "__STATIC_CONTENT", as_content=True)


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


_ALL_FILES = Subfield("all files of the bucket are deployed; .assetsignore leaves some out", level=FindingLevel.WARNING)

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
    ConfigField(
        name="site",
        shape=ConfigSite,
        read=read_site,
        inherited=False,
        subfields={
            "site.include": _ALL_FILES,
            "site.exclude": _ALL_FILES,
            "site.entry-point": Subfield("`main` names the script"),
        },
    ),
)
