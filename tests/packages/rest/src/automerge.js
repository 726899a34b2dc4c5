import * as Automerge from "@automerge/automerge";

export default () => {
  let one = Automerge.from({ list: ["a"] }, "aa");
  let two = Automerge.clone(one, "bb");
  one = Automerge.change(one, { time: 0 }, (doc) => void doc.list.push("b"));
  two = Automerge.change(two, { time: 0 }, (doc) => void (doc.name = "x"));
  return [Automerge.merge(one, two), Automerge.load(Automerge.save(one)).list];
};
