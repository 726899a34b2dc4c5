import { json } from "@sveltejs/kit";

export async function POST({ request }) {
  const numbers = await request.json();
  return json({ sum: numbers.reduce((sum, each) => sum + each, 0) });
}
