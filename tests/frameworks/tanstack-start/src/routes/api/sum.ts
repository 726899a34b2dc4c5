import { createFileRoute } from "@tanstack/react-router";

export const Route = createFileRoute("/api/sum")({
  server: {
    handlers: {
      POST: async ({ request }) => {
        const numbers: number[] = await request.json();
        return Response.json({ sum: numbers.reduce((sum, each) => sum + each, 0) });
      },
    },
  },
});
