import { produce } from "immer";
import { concatMap, delay, from, lastValueFrom, map, of, scan, toArray } from "rxjs";
import * as Y from "yjs";

export default async () => {
  const before = { a: { b: [1] }, c: {} };
  const after = produce(before, (draft) => void draft.a.b.push(2));
  const one = new Y.Doc();
  const two = new Y.Doc();
  one.getText("t").insert(0, "hello");
  two.getText("t").insert(0, "world ");
  Y.applyUpdate(two, Y.encodeStateAsUpdate(one));
  Y.applyUpdate(one, Y.encodeStateAsUpdate(two));
  return [
    before, after, after.c === before.c,
    await lastValueFrom(from([1, 2, 3]).pipe(concatMap((n) => of(n * 2).pipe(delay(1))), scan((sum, n) => sum + n, 0), map((n) => n + 1), toArray())),
    one.getText("t").toString() === two.getText("t").toString(), one.getText("t").length,
  ];
};
