// Queues in the dashboard: where their pages are, and what they are called.
export const entry = {
  at: "queues",
  name: "Queues",
  order: 5,
  what: "Messages that wait for a consumer, and those that failed.",
  placeOf: ({ type, queue }) => type === "queue" && [queue],
  load: () => import("./view.js"),
};
