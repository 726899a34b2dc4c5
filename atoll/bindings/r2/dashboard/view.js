// The pages of R2: the buckets, the folders of one, and one object. ?prefix and ?key say which.
import { bytes, count } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { route } from "#dashboard/core/router.js";
import { Ago } from "#dashboard/parts/pieces.js";
import { Resources } from "#dashboard/parts/things.js";
import { Folder } from "./folder.js";
import { OneFile } from "./file.js";

const COLUMNS = [
  { name: "Objects", number: true, of: ({ objects }) => count(objects) },
  { name: "Size", number: true, of: (each) => bytes(each.bytes) },
  { name: "Created", of: ({ created_at }) => html`<${Ago} at=${created_at} />` },
];

export function View({ rest: [bucket] }) {
  if (bucket === undefined) {
    return html`<${Resources} at="r2" path="/api/r2" field="buckets" noun="bucket" columns=${COLUMNS} command=${`atoll r2 bucket create files --api ${location.origin}`} />`;
  }
  const key = route.value.query.get("key");
  return key ? html`<${OneFile} key=${key} bucket=${bucket} name=${key} />` : html`<${Folder} bucket=${bucket} />`;
}
