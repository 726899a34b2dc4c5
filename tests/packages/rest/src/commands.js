import { Chalk } from "chalk";
import { Command } from "commander";
import createDebug from "debug";

export default () => {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  program.name("shop").option("-n, --number <n>", "a number", Number).argument("<file>");
  program.parse(["-n", "5", "a.txt"], { from: "user" });
  let code = "";
  try {
    new Command().exitOverride().configureOutput({ writeErr: () => {} }).parse(["--nothing"], { from: "user" });
  } catch (error) {
    code = error.code;
  }
  const colors = new Chalk({ level: 1 });
  const debug = createDebug("shop:cart");
  debug("not shown");
  createDebug.enable("shop:*");
  return [program.opts(), program.args, program.helpInformation(), code, colors.red.bold("x"), debug.enabled, createDebug("other").enabled];
};
