"""Deploys Atoll's examples to a node that was just started."""

from __future__ import annotations

from atoll.api.refusals import Refused
from atoll.control.checks.body import DeployBody
from atoll.control.deploy.deployer import Deployer
from atoll.engine.process.engine_process import built_folders
from atoll.errors import StartError


async def deploy_example(deployer: Deployer, name: str) -> None:
    """Deploy an example, unless a worker of its name exists."""
    import tomllib  # here: most nodes start without an example

    if deployer.named(name) is not None:
        return
    for folder in built_folders():
        example = folder / "_examples" / name
        if example.is_dir():
            config = tomllib.loads((example / "atoll.toml").read_text("utf-8"))
            script = (example / config["main"]).read_text("utf-8")
            try:
                await deployer.create(DeployBody(name=name, script=script, env=config.get("vars", {})))
            except Refused as refused:
                raise StartError(f"the example {name} was refused: {refused}", "start without --example") from None
            return
    raise StartError(f"this Atoll has no example {name}", "leave out --example")
