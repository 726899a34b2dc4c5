// A worker on D1 with drizzle-orm: a schema, inserts, a join, an update in a batch, an error.
import { count, desc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

const users = sqliteTable("users", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  name: text("name").notNull().unique(),
  isAdmin: integer("is_admin", { mode: "boolean" }).notNull().default(false),
  born: integer("born", { mode: "timestamp" }),
  settings: text("settings", { mode: "json" }),
});
const posts = sqliteTable("posts", {
  id: integer("id").primaryKey(),
  author: integer("author").references(() => users.id),
  title: text("title").notNull(),
});

export default {
  async fetch(request, env) {
    const db = drizzle(env.DB, { schema: { users, posts } });
    const [ada] = await db
      .insert(users)
      .values({ name: "Ada", isAdmin: true, born: new Date("1815-12-10T00:00:00Z"), settings: { theme: "dark" } })
      .returning();
    const added = await db.insert(posts).values([{ author: ada.id, title: "Notes" }, { author: ada.id, title: "More" }]).run();
    const joined = await db
      .select({ name: users.name, title: posts.title })
      .from(posts)
      .innerJoin(users, eq(posts.author, users.id))
      .orderBy(desc(posts.id));
    const [, [{ n }]] = await db.batch([
      db.update(users).set({ name: "Ada L." }).where(eq(users.id, ada.id)),
      db.select({ n: count() }).from(posts),
    ]);
    const found = await db.query.users.findFirst({ where: eq(users.name, "Ada L.") });
    const failed = await db.insert(users).values({ name: "Ada L." }).catch((error) => `${error.cause?.message ?? error.message}`);
    return Response.json({ ada, changes: added.meta.changes, joined, n, found: found.isAdmin, failed });
  },
};
