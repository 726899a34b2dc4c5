import { bindings } from "../bindings";

export function loader({ context }: { context: { get(key: typeof bindings): { GREETING: string } } }) {
  return { greeting: context.get(bindings).GREETING };
}

export default function Home({ loaderData }: { loaderData: { greeting: string } }) {
  return <h1>{loaderData.greeting} from React Router</h1>;
}
