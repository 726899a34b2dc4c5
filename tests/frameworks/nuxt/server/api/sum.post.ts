export default defineEventHandler(async (event) => {
  const numbers: number[] = await readBody(event);
  return { sum: numbers.reduce((sum, each) => sum + each, 0) };
});
