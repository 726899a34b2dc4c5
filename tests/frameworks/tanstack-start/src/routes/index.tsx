import { createFileRoute } from "@tanstack/react-router";
import { createServerFn } from "@tanstack/react-start";
import { env } from "cloudflare:workers";

const greeting = createServerFn().handler(() => ({ greeting: (env as { GREETING: string }).GREETING }));

export const Route = createFileRoute("/")({
  loader: () => greeting(),
  component: () => <h1>{Route.useLoaderData().greeting} from TanStack Start</h1>,
});
