/** Reaches local servers through another node, with `p2p/listen` and `p2p/forward`. */
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { digestOf, keystream } from "#test/support/content.ts";
import type { Report } from "./report.ts";
import type { Rpc } from "./rpc.ts";

const echoed = 3_000_000;

interface Listeners {
  readonly Listeners: readonly { Protocol: string; ListenAddress: string; TargetAddress: string }[] | null;
}

/** Enables tunnels; call it before the first one. */
export async function allowTunnels(node: Rpc): Promise<void> {
  await node.one("config", { arg: ["Experimental.Libp2pStreamMounting", "true"], bool: "true" });
}

/** Uses an echo server and a web server on the machine of `there` through `here`. */
export async function tunnels(report: Report, here: Rpc, there: Rpc): Promise<void> {
  await using echo = await listening(createServer({ allowHalfOpen: false }, sendBack));
  await using web = await listening(
    createHttpServer((request, response) => void response.end(`${request.method} ${request.url}`)),
  );
  for (const [protocol, { port }] of [
    ["/x/echo", echo],
    ["/x/web", web],
  ] as const) {
    await there.all("p2p/listen", { arg: [protocol, `/ip4/127.0.0.1/tcp/${port}`] });
    await here.all("p2p/forward", { arg: [protocol, "/ip4/127.0.0.1/tcp/0", `/p2p/${there.id}`] });
  }
  const listed = (await here.one<Listeners>("p2p/ls")).Listeners ?? [];
  const portOf = (protocol: string) => {
    const forward = listed.find((one) => one.Protocol === protocol && one.TargetAddress === `/p2p/${there.id}`);
    return Number(forward?.ListenAddress.split("/").at(-1));
  };
  const sent = [...keystream(echoed, 77)];
  const received = await throughEcho(portOf("/x/echo"), sent);
  report.same(`${echoed} bytes echoed through ${here.name} and ${there.name}`, digestOf([received]), digestOf(sent));
  const page = await fetch(`http://127.0.0.1:${portOf("/x/web")}/a/page`, { headers: { connection: "close" } });
  report.same("a page of the web server", await page.text(), "GET /a/page");
  report.same(`listeners closed on ${here.name}`, await here.one<number>("p2p/close", { all: "true" }), 2);
  report.same(`listeners closed on ${there.name}`, await there.one<number>("p2p/close", { all: "true" }), 2);
}

/** Kubo resets a stream at its end; over QUIC the reset may arrive before the data. */
function sendBack(socket: Socket): void {
  socket.on("error", () => undefined).pipe(socket);
}

/** Sends all pieces, and returns what came back once it has the same length. */
async function throughEcho(port: number, pieces: readonly Uint8Array[]): Promise<Buffer> {
  const socket = connect(port, "127.0.0.1");
  let left = pieces.reduce((sum, { length }) => sum + length, 0);
  socket.on("data", ({ length }) => {
    left -= length;
    if (left === 0) socket.end();
  });
  for (const piece of pieces) socket.write(piece);
  return buffer(socket);
}

async function listening(server: Server): Promise<AsyncDisposable & { readonly port: number }> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, "close");
    },
  };
}
