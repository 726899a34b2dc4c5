// A worker on D1 with kysely: a schema, inserts, a join, an update, an error.
import { Kysely, sql } from "kysely";
import { D1Dialect } from "kysely-d1";

export default {
  async fetch(request, env) {
    const db = new Kysely({ dialect: new D1Dialect({ database: env.DB }) });
    await db.schema
      .createTable("person")
      .ifNotExists()
      .addColumn("id", "integer", (column) => column.primaryKey())
      .addColumn("name", "text", (column) => column.unique().notNull())
      .execute();
    await db.schema.createTable("pet").ifNotExists().addColumn("owner", "integer", (column) => column.references("person.id")).addColumn("name", "text").execute();
    const ada = await db.insertInto("person").values({ name: "Ada" }).returningAll().executeTakeFirstOrThrow();
    const added = await db.insertInto("pet").values([{ owner: ada.id, name: "Cat" }, { owner: ada.id, name: "Dog" }]).executeTakeFirst();
    const joined = await db
      .selectFrom("person")
      .innerJoin("pet", "pet.owner", "person.id")
      .select(["person.name as person", "pet.name as pet", sql`length(pet.name)`.as("size")])
      .orderBy("pet.name", "desc")
      .execute();
    const changed = await db.updateTable("pet").set({ name: "Owl" }).where("name", "=", "Dog").executeTakeFirst();
    const failed = await db.insertInto("person").values({ name: "Ada" }).execute().catch((error) => error.message);
    return Response.json({ ada, added: Number(added.numInsertedOrUpdatedRows), joined, changed: Number(changed.numUpdatedRows), failed });
  },
};
