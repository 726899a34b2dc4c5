// The cache in the dashboard: where its pages are, and what they are called.
export const entry = {
  at: "cache",
  name: "Cache",
  order: 6,
  what: "Responses that workers keep with the Cache API, and that the node keeps for fetch().",
  placeOf: () => false, // every worker has caches, without a binding
  load: () => import("./view.js"),
};
