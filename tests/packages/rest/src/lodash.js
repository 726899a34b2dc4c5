// `lodash`: `_.template` at the top level, since it writes code
import _ from "lodash";
import { chunk, debounce, groupBy } from "lodash-es";

const hello = _.template("hello <%= name %>");

export default async () => {
  let calls = 0;
  const late = debounce(() => calls++, 5);
  late();
  late();
  await new Promise((resolve) => setTimeout(resolve, 30));
  return [chunk([1, 2, 3], 2), groupBy(["a", "bb", "c"], "length"), _.merge({ a: { b: 1 } }, { a: { c: 2 } }), _.get({ a: [{ b: 7 }] }, "a[0].b"), _.camelCase("foo bar-baz"), _.isEqual({ a: [1, new Date(0)] }, { a: [1, new Date(0)] }), hello({ name: "you" }), calls];
};
