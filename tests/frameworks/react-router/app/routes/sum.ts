export async function action({ request }: { request: Request }) {
  const numbers: number[] = await request.json();
  return Response.json({ sum: numbers.reduce((sum, each) => sum + each, 0) });
}
