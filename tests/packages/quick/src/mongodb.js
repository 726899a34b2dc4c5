// `mongodb`: against a small server of the tests, since no package index carries MongoDB
import { BSON, MongoClient, ObjectId } from "mongodb";

export default async ({ mongo }) => {
  const client = new MongoClient(mongo, { serverSelectionTimeoutMS: 5000 });
  const items = client.db("shop").collection("items");
  await items.deleteMany({});
  const { insertedId } = await items.insertOne({ name: "日本", price: 1.5, at: new Date(0), tags: ["a"] });
  await items.insertMany([{ name: "pear", price: 2 }, { name: "plum", price: 3 }]);
  const found = await items.findOne({ name: "日本" });
  const names = [];
  for await (const each of items.find({}).batchSize(1)) names.push(each.name);
  await client.close();
  const bytes = BSON.serialize({ a: 1n, id: new ObjectId("0123456789abcdef01234567"), d: BSON.Decimal128.fromString("1.50") });
  const lost = new MongoClient("mongodb://127.0.0.1:1/", { serverSelectionTimeoutMS: 300 });
  const error = await lost.db("x").command({ ping: 1 }).catch((error) => error.name);
  await lost.close();
  return [found.price, found.at, insertedId.equals(found._id), names, Buffer.from(bytes).toString("hex"), BSON.EJSON.stringify(BSON.deserialize(bytes)), error];
};
