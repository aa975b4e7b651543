import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Resolves to a port at which nobody listened a moment ago, for programs that need the port as an
 * argument.
 */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
