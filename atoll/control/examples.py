"""The examples that come with Atoll, as workers of a node that was just started."""

from __future__ import annotations

from atoll.control.check import DeployBody
from atoll.control.deploy import Deployer
from atoll.control.refusals import Refused
from atoll.engine.process import built_folders
from atoll.errors import StartError


async def deploy_example(deployer: Deployer, name: str) -> None:
    """Deploy one of them, unless a worker has its name."""
    import tomllib  # here: most nodes start without an example

    if any(deployment.name == name for deployment in deployer.all()):
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
    raise StartError(f"the example {name} did not come with this Atoll", "leave out --example")
