// Workflows in the dashboard: where their pages are, and what they are called.
export const entry = {
  at: "workflows",
  name: "Workflows",
  order: 6,
  what: "Code whose steps are kept: instances, and where each of them is.",
  placeOf: ({ type, workflow }) => type === "workflow" && [workflow],
  load: () => import("./view.js"),
};
