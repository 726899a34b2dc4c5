// D1 in the dashboard: where its pages are, and what they are called.
export const entry = {
  at: "d1",
  name: "D1",
  order: 2,
  what: "SQLite databases: tables, rows, SQL, and the way back in time.",
  placeOf: ({ type, database }) => type === "d1" && [database],
  load: () => import("./view.js"),
};
