import { Await, createFileRoute } from "@tanstack/react-router";
import { Suspense } from "react";

export const Route = createFileRoute("/stream")({
  loader: () => ({ late: new Promise<string>((resolve) => setTimeout(resolve, 100, "late part")) }),
  component: () => (
    <main>
      <p>early part</p>
      <Suspense fallback={<p>waiting</p>}>
        <Await promise={Route.useLoaderData().late}>{(text) => <p>{text}</p>}</Await>
      </Suspense>
    </main>
  ),
});
