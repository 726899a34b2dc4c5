// A plugin of esbuild: sources of this repository take packages from one folder only.
//
// esbuild looks in every `node_modules` above a file first. The one of the source tree is for tests and may be older than
// the lock file, while the build installs its own. Two copies of one package in a bundle are two worlds: signals that told
// the other copy of Preact about a change never drew a page again.
import { sep } from "node:path";

export const packagesFrom = (packages) => ({
  name: "packages-from",
  setup(build) {
    build.onResolve({ filter: /^[@a-z][\w.-]*(\/|$)/ }, ({ path, kind, resolveDir, pluginData }) => {
      if (pluginData === packagesFrom || `${resolveDir}${sep}`.startsWith(packages + sep)) return undefined;
      return build.resolve(path, { kind, resolveDir: packages, pluginData: packagesFrom });
    });
  },
});
