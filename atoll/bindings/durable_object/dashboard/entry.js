// Durable Objects in the dashboard: where their pages are, and what they are called.
export const entry = {
  at: "objects",
  name: "Objects",
  order: 3,
  what: "Durable Objects: what each stores, its alarm and its sockets.",
  placeOf: ({ type, class_name, script_name }, worker) => type === "durable_object" && [script_name || worker, class_name],
  load: () => import("./view.js"),
};
