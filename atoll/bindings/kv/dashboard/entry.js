// KV in the dashboard: where its pages are, and what they are called. The pages themselves are fetched when they are opened.
export const entry = {
  at: "kv",
  name: "KV",
  order: 1,
  what: "Keys and values in namespaces. A worker sees a namespace as a binding.",
  placeOf: ({ type, namespace }) => type === "kv" && [namespace],
  load: () => import("./view.js"),
};
