import { Suspense } from "react";
import { Await } from "react-router";

export function loader() {
  return { late: new Promise<string>((resolve) => setTimeout(resolve, 100, "late part")) };
}

export default function Stream({ loaderData }: { loaderData: { late: Promise<string> } }) {
  return (
    <main>
      <p>early part</p>
      <Suspense fallback={<p>waiting</p>}>
        <Await resolve={loaderData.late}>{(text) => <p>{text}</p>}</Await>
      </Suspense>
    </main>
  );
}
