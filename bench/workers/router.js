// workerd does not route by host: this worker does it, with one service binding per worker.
export default {
  fetch(request, env) {
    const name = request.headers.get("host").split(".")[0];
    return env[name].fetch(request);
  },
};
