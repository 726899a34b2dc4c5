// R2 in the dashboard: where its pages are, and what they are called.
export const entry = {
  at: "r2",
  name: "R2",
  order: 4,
  what: "Buckets of files, which workers and S3 clients read and write.",
  placeOf: ({ type, bucket }) => type === "r2" && [bucket],
  load: () => import("./view.js"),
};
