"""The dashboard in Chromium: opens pages, acts like a user, and notices everything that the browser complains about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.browser import Tab
from tests.running import Atoll

AXE = (Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js").read_text("utf-8")
READY = "document.querySelector('#main h1, #main .empty, .login h1') && !document.querySelector('.loading, .boot')"
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40}
# Kept in the page: violations of the Content-Security-Policy, by the event that the browser sends
WATCH = """addEventListener("securitypolicyviolation", (event) => {
  console.error("CSP: " + event.violatedDirective + " " + event.blockedURI + " " + event.sample);
});"""


class Pages:
    def __init__(self, tab: Tab, node: Atoll) -> None:
        self.tab = tab
        self.node = node
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.send(f"{domain}.enable")
        tab.send("Page.addScriptToEvaluateOnNewDocument", source=WATCH)

    def open(self, path: str = "/", *, ready: str = READY) -> None:
        self.tab.send("Page.navigate", url=f"http://{self.node.control_host}/dashboard{path}")
        self.tab.wait_until(f"location.pathname.startsWith('/dashboard') && document.body && Boolean({ready})")

    def run(self, script: str) -> Any:
        return self.tab.run(script)

    def wait(self, script: str) -> Any:
        return self.tab.wait_until(script)

    def text(self) -> str:
        return self.tab.text()

    def click(self, text: str, within: str = "button, a, summary, [role=option]") -> None:
        """Click on the first thing with this text that can be clicked."""
        find = f"[...document.querySelectorAll({json.dumps(within)})].find((each) => each.innerText?.trim().startsWith({json.dumps(text)}) && !each.disabled)"
        self.wait(f"Boolean({find})")
        self.run(f"{find}.click()")

    def type(self, text: str, into: str) -> None:
        self.wait(f"Boolean(document.querySelector({json.dumps(into)}))")
        self.run(f"""{{ const input = document.querySelector({json.dumps(into)});
          if (document.activeElement !== input) input.focus();
          if (input.selectionStart === input.selectionEnd) input.setSelectionRange(input.value.length, input.value.length); }}""")
        self.tab.send("Input.insertText", text=text)

    def choose_file(self, file: Path, into: str) -> None:
        self.wait(f"Boolean(document.querySelector({json.dumps(into)}))")
        root = self.tab.send("DOM.getDocument")["root"]["nodeId"]
        found = self.tab.send("DOM.querySelector", nodeId=root, selector=into)["nodeId"]
        self.tab.send("DOM.setFileInputFiles", nodeId=found, files=[str(file)])

    def press(self, key: str) -> None:
        fields: dict[str, Any] = {"key": key}
        if key in KEYS:
            fields |= {"windowsVirtualKeyCode": KEYS[key], "code": key} | ({"text": "\r"} if key == "Enter" else {})
        else:
            fields |= {"text": key}
        self.tab.send("Input.dispatchKeyEvent", type="keyDown", **fields)
        self.tab.send("Input.dispatchKeyEvent", type="keyUp", **fields)

    def theme(self, name: str) -> None:
        self.tab.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def width(self, width: int) -> None:
        self.tab.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 400
        )

    def violations(self) -> list[str]:
        """What axe-core finds: the rule and the element."""
        self.tab.send("Runtime.evaluate", expression=AXE)
        found = self.run("axe.run(document, { resultTypes: ['violations'] }).then((all) => all.violations)")
        return [f"{each['id']}: {node['html'][:160]}" for each in found for node in each["nodes"]]

    def complaints(self) -> list[str]:
        """Console messages, exceptions, violations of the CSP, and requests to other hosts, since the last call."""
        self.run("1")  # events before it have arrived
        said = []
        for event in self.tab.events:
            params = event["params"]
            if event["method"] == "Runtime.consoleAPICalled":
                said.append(" ".join(str(each.get("value", each.get("description"))) for each in params["args"]))
            elif event["method"] == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                said.append(details.get("exception", {}).get("description", details["text"]))
            elif event["method"] == "Log.entryAdded":
                said.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            elif event["method"] == "Network.requestWillBeSent":
                url = params["request"]["url"]
                own = f"http://{self.node.control_host}/"
                if not url.startswith((own, f"blob:{own}", "data:")):
                    said.append(f"a request to {url}")
        self.tab.events.clear()
        return said
