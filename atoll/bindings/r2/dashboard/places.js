// Addresses of the pages of R2, and of its endpoints.
import { at } from "#dashboard/core/api.js";

export const pathOf = (bucket) => at`/api/r2/${bucket}`;
export const pageOf = (bucket, fields = {}) => {
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value)).toString();
  return `${at`/data/r2/${bucket}`}${query && `?${query}`}`;
};

/** "a/b/" as its folders: [["a", "a/"], ["b", "a/b/"]]. */
export function foldersOf(prefix) {
  const names = prefix.split("/").slice(0, -1);
  return names.map((name, place) => [name, `${names.slice(0, place + 1).join("/")}/`]);
}
