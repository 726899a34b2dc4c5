import { getCloudflareContext } from "@opennextjs/cloudflare";

export const dynamic = "force-dynamic";

export default function Page() {
  return <h1>{getCloudflareContext().env.GREETING} from Next</h1>;
}
