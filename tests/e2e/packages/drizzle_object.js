// A Durable Object with drizzle-orm on its own storage: a migration, an insert, a transaction that is undone, a query.
import { DurableObject } from "cloudflare:workers";
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/durable-sqlite";
import { migrate } from "drizzle-orm/durable-sqlite/migrator";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

const notes = sqliteTable("notes", { id: integer("id").primaryKey({ autoIncrement: true }), text: text("text").notNull() });
const migrations = {
  journal: { entries: [{ idx: 0, when: 1, tag: "0000_notes", breakpoints: true }] },
  migrations: { m0000: "CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, text TEXT NOT NULL);" },
};

export class Notes extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.db = drizzle(ctx.storage, { schema: { notes } });
    ctx.blockConcurrencyWhile(() => migrate(this.db, migrations));
  }
  async run() {
    const [first] = await this.db.insert(notes).values({ text: "one" }).returning();
    let undone = "";
    try {
      this.db.transaction((tx) => {
        tx.insert(notes).values({ text: "never" }).run();
        throw new Error("undo");
      });
    } catch (error) {
      undone = error.message;
    }
    await this.db.update(notes).set({ text: "changed" }).where(eq(notes.id, first.id));
    return { first, undone, all: await this.db.query.notes.findMany() };
  }
}

export default {
  async fetch(request, env) {
    return Response.json(await env.NOTES.getByName("a").run());
  },
};
