/** Keeps ports open and their connections waiting while one host takes over from another. */
import { createServer, type Server, type Socket } from "node:net";
import type { Open } from "./change.ts";
import type { PausedPort } from "./inherited.ts";
import { listenOn } from "./listen.ts";

/**
 * Replaces a listening server: new connections wait, and nothing is read from them, so that they
 * can be passed to another process.
 */
export async function pauseConnections(server: Server): Promise<Pick<PausedPort, "server" | "waiting">> {
  const waiting: Socket[] = [];
  const options = { allowHalfOpen: true, noDelay: true, pauseOnConnect: true };
  const holder = createServer(options, (socket) => {
    waiting.push(socket);
    // The error of a client that disconnects has no other listener yet.
    socket.on("error", () => undefined);
  });
  await listenOn(holder, server);
  return { server: holder, waiting };
}

/**
 * Keeps a port of a service open. Returns undefined for a Unix socket, whose path the next host
 * opens again.
 */
export async function pausePort(
  name: string,
  { server, bindAddress, endpoint }: Open,
): Promise<PausedPort | undefined> {
  if (typeof (server.address() ?? "") === "string") return undefined;
  const own = endpoint !== undefined && "port" in endpoint ? endpoint : undefined;
  const { address, port } = own ?? bindAddress ?? {};
  const isRequested = address !== undefined && port !== undefined;
  const requested = isRequested ? { address, port, isEndpoint: own !== undefined } : undefined;
  return { name, requested, ...(await pauseConnections(server)) };
}
