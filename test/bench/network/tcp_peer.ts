/** The minimum cost: bytes over a socket, and the hash of each piece on both sides. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Arrival, PlainContents } from "./plain_content.ts";
import { serve, timed } from "./serve.ts";

const contents = new PlainContents();
let to: Socket | undefined;

/** The response to a line with a name is the content; a line without a name is echoed. */
const server = createServer({ noDelay: true }, (socket) => {
  socket
    .on("error", () => undefined)
    .on("data", async (line: Buffer) => {
      const pieces = contents.get(String(line).trim());
      if (pieces === undefined) return void socket.write(line);
      for (const piece of pieces) if (!socket.write(piece)) await once(socket, "drain");
    });
});
await once(server.listen(0, "127.0.0.1"), "listening");

async function dial(address: string): Promise<Socket> {
  const socket = connect({ port: Number(address), host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  return socket;
}

async function said(socket: Socket, line: string): Promise<void> {
  const echoed = once(socket, "data");
  socket.write(line);
  await echoed;
}

serve(String((server.address() as AddressInfo).port), {
  async add({ size, chunk, seed }) {
    return contents.add(size, chunk, seed);
  },
  async connect({ address, times }) {
    return timed(times, async () => {
      to?.destroy();
      to = await dial(address);
    });
  },
  async ping({ times }) {
    const socket = to as Socket;
    return timed(times, () => said(socket, `${"x".repeat(31)}\n`));
  },
  async read({ name, size }) {
    const socket = to as Socket;
    const arrival = new Arrival(name, size);
    const take = (bytes: Buffer) => arrival.take(bytes);
    socket.on("data", take);
    socket.write(`${name}\n`);
    await arrival.all;
    socket.off("data", take);
    return null;
  },
});
