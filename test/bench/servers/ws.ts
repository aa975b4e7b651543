/** An echo server that uses only the library `ws`. */
import { WebSocketServer } from "ws";
import { listen } from "./listen.ts";

const server = listen((_request, response) => {
  response.writeHead(426).end();
});
const sockets = new WebSocketServer({ server, path: "/echo/ws" });
sockets.on("connection", (socket) => {
  socket.on("message", (message, isBinary) => socket.send(message, { binary: isBinary }));
});
