export async function POST({ request }) {
  const numbers = await request.json();
  return Response.json({ sum: numbers.reduce((sum, each) => sum + each, 0) });
}
