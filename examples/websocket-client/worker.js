// Joins the chat room of the example `chat`, sends a message, and responds with the messages it received.
export default {
  async fetch(request) {
    const text = new URL(request.url).searchParams.get("say") ?? "hello from a worker";
    const socket = new WebSocket("ws://chat.localhost/"); // a worker of this node: no network is used
    const heard = [];
    await new Promise((resolve, reject) => {
      socket.onopen = () => socket.send(text);
      socket.onerror = ({ message }) => reject(new Error(message));
      socket.onmessage = ({ data }) => {
        heard.push(data);
        if (data === text) resolve();
      };
    });
    socket.close(1000, "said it");
    return Response.json({ heard });
  },
};
