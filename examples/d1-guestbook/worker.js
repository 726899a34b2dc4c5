// A guestbook in a D1 database: POST {"name", "message"} signs it, GET lists it, GET /NAME lists the entries of one guest.
export default {
  async fetch(request, env) {
    if (request.method === "POST") return sign(await request.json(), env.DB);
    const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
    const query = name === ""
      ? env.DB.prepare("SELECT * FROM entries ORDER BY id DESC LIMIT 100")
      : env.DB.prepare("SELECT * FROM entries WHERE name = ? ORDER BY id DESC LIMIT 100").bind(name);
    const { results } = await query.all();
    return Response.json(results);
  },
};

async function sign({ name, message }, db) {
  if (typeof name !== "string" || typeof message !== "string") return new Response("send a name and a message\n", { status: 400 });
  // A batch is one transaction: the count includes the new entry and no other one that comes at the same time.
  const [{ meta }, { results }] = await db.batch([
    db.prepare("INSERT INTO entries (name, message) VALUES (?, ?)").bind(name, message),
    db.prepare("SELECT count(*) AS entries FROM entries"),
  ]);
  return Response.json({ id: meta.last_row_id, entries: results[0].entries }, { status: 201 });
}
