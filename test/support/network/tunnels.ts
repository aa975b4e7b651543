/** Local servers reached through another node: what `p2p/listen` and `p2p/forward` carry. */
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

/** Before the first tunnel. */
export async function allowTunnels(node: Rpc): Promise<void> {
  await node.one("config", { arg: ["Experimental.Libp2pStreamMounting", "true"], bool: "true" });
}

/** An echo server and a web server beside `there` are used through `here`. */
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
  const answer = await throughEcho(portOf("/x/echo"), sent);
  report.same(`${echoed} bytes echoed through ${here.name} and ${there.name}`, digestOf([answer]), digestOf(sent));
  const page = await fetch(`http://127.0.0.1:${portOf("/x/web")}/a/page`, { headers: { connection: "close" } });
  report.same("a page of the web server there", await page.text(), "GET /a/page");
  report.same(`listeners closed on ${here.name}`, await here.one<number>("p2p/close", { all: "true" }), 2);
  report.same(`and on ${there.name}`, await there.one<number>("p2p/close", { all: "true" }), 2);
}

/** Kubo resets a stream when it has its end; over QUIC that may come first. */
function sendBack(socket: Socket): void {
  socket.on("error", () => undefined).pipe(socket);
}

/** Sends all, and gives what came back until there was as much. */
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
