// Combines three upstreams into one response. It calls all of them at once; one that fails affects only its own part.
export default {
  async fetch(request, env) {
    const parts = await Promise.all(env.UPSTREAMS.split(" ").map(ask));
    return Response.json({ parts });
  },
};

async function ask(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(3000) });
    return { url, status: response.status, text: (await response.text()).slice(0, 200) };
  } catch (error) {
    return { url, error: error.message };
  }
}
