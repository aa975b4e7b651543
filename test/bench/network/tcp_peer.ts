/** The least that it can cost: bytes over a socket, with the hash of each piece made on either side. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { keystream } from "#test/support/content.ts";
import { serve, timed } from "./serve.ts";

/** Content by its name: pieces as long as the chunks. */
const contents = new Map<string, readonly Buffer[]>();
let to: Socket | undefined;

/** A name on a line is answered with its content, a line without one is sent back. */
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
  const answer = once(socket, "data");
  socket.write(line);
  await answer;
}

serve(String((server.address() as AddressInfo).port), {
  async add({ size, chunk, seed }) {
    const whole = Buffer.concat([...keystream(size, seed)]);
    const pieces = Array.from({ length: Math.ceil(size / chunk) }, (_, at) =>
      whole.subarray(at * chunk, (at + 1) * chunk),
    );
    for (const piece of pieces) createHash("sha256").update(piece).digest();
    contents.set(`${seed}/${chunk}`, pieces);
    return `${seed}/${chunk}`;
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
    const chunk = Number(name.split("/")[1]);
    const socket = to as Socket;
    let left = size;
    let held = 0;
    let hash = createHash("sha256");
    const { promise, resolve } = Promise.withResolvers<null>();
    const take = (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; ) {
        const part = bytes.subarray(at, at + chunk - held);
        hash.update(part);
        at += part.length;
        held += part.length;
        left -= part.length;
        if (held < chunk && left > 0) continue;
        hash.digest();
        hash = createHash("sha256");
        held = 0;
      }
      if (left === 0) resolve(null);
    };
    socket.on("data", take);
    socket.write(`${name}\n`);
    await promise;
    socket.off("data", take);
    return null;
  },
});
