"""A worker that calls functions of the Python program it runs in: python examples/host_binding.py"""

from __future__ import annotations

import asyncio

from atoll import Atoll, HostBinding, OpCall, Reply, op

WORKER = """
export default {
  async fetch(request, env) {
    return new Response(`${await env.STOCK.count("apples")} apples left`);
  },
};
"""


class Inventory(HostBinding):
    """Tells workers how many of an item are in stock."""

    kind = "inventory"
    javascript = """
        const count = defineOp("inventory.count");

        defineBinding("inventory", class Inventory {
          #name; // the name in env

          constructor(name) {
            this.#name = name;
          }

          async count(item) {
            const { meta } = await count({ binding: this.#name, item: `${item}` });
            return meta.count;
          }
        });
    """

    def __init__(self, **stock: int) -> None:
        self.stock = stock

    @op("inventory.count")
    def count(self, call: OpCall) -> Reply:
        return Reply({"count": self.stock.get(str(call.meta.get("item")), 0)})


async def main() -> None:
    inventory = Inventory(apples=3)
    async with Atoll(bindings=[inventory]) as atoll:
        shop = await atoll.deploy("shop", WORKER, bindings=[{"type": "inventory", "name": "STOCK"}])
        print((await shop.fetch()).text)
        inventory.stock["apples"] -= 1
        print((await shop.fetch()).text)


if __name__ == "__main__":
    asyncio.run(main())
