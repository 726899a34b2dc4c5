// workerd has no routing by host of its own: this worker does it, with one service binding per worker.
export default {
  fetch(request, env) {
    const name = request.headers.get("host").split(".")[0];
    return env[name].fetch(request);
  },
};
