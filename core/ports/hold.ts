/** Ports that stay open, and whose connections wait, while one host follows another on them. */
import { createServer, type Server, type Socket } from "node:net";
import type { Open } from "./change.ts";
import type { HeldPort } from "./inherited.ts";
import { listenOn } from "./listen.ts";

/**
 * Takes the place of a listening server: whoever connects from now on waits, and nothing is read of the connection, so that
 * it can be given to another process.
 */
export async function holdConnections(server: Server): Promise<Pick<HeldPort, "server" | "waiting">> {
  const waiting: Socket[] = [];
  const options = { allowHalfOpen: true, noDelay: true, pauseOnConnect: true };
  const holder = createServer(options, (socket) => {
    waiting.push(socket);
    // Nobody is there yet to hear of a client that leaves.
    socket.on("error", () => undefined);
  });
  await listenOn(holder, server);
  return { server: holder, waiting };
}

/** Keeps a port of a service open. Undefined for a Unix socket, whose path the next host opens anew. */
export async function hold(name: string, { server, place, endpoint }: Open): Promise<HeldPort | undefined> {
  if (typeof (server.address() ?? "") === "string") return undefined;
  const own = endpoint !== undefined && "port" in endpoint ? endpoint : undefined;
  const { address, port } = own ?? place ?? {};
  const isAsked = address !== undefined && port !== undefined;
  const asked = isAsked ? { address, port, isEndpoint: own !== undefined } : undefined;
  return { name, asked, ...(await holdConnections(server)) };
}
