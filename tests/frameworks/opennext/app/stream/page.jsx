import { Suspense } from "react";

export const dynamic = "force-dynamic";

async function Late() {
  await new Promise((resolve) => setTimeout(resolve, 100));
  return <p>late part</p>;
}

export default function Stream() {
  return (
    <main>
      <p>early part</p>
      <Suspense fallback={<p>waiting</p>}>
        <Late />
      </Suspense>
    </main>
  );
}
