// `drizzle-orm`: with `pg` against PostgreSQL
import { drizzle as proxy } from "drizzle-orm/pg-proxy";
import { drizzle } from "drizzle-orm/node-postgres";
import { desc, eq, gt, sql } from "drizzle-orm";
import { integer, pgTable, serial, text } from "drizzle-orm/pg-core";
import pg from "pg";

const items = pgTable("pk_items", { id: serial().primaryKey(), name: text().notNull(), price: integer() });

export default async ({ pg: where }) => {
  const shown = proxy(async () => ({ rows: [] })).select().from(items).where(gt(items.price, 1)).orderBy(desc(items.id)).toSQL();
  const client = new pg.Client(where);
  await client.connect();
  try {
    const db = drizzle(client);
    await db.execute(sql`CREATE TEMP TABLE pk_items (id serial primary key, name text not null, price integer)`);
    await db.insert(items).values([{ name: "pear", price: 2 }, { name: "日本", price: 3 }]);
    await db.transaction((tx) => tx.update(items).set({ price: 4 }).where(eq(items.name, "pear")));
    const undone = await db.transaction(async (tx) => {
      await tx.delete(items);
      tx.rollback();
    }).catch((error) => error.name);
    return [shown, await db.select().from(items).orderBy(items.id), undone];
  } finally {
    await client.end();
  }
};
