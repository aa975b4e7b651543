/** Programs that tests start: their ports, which they must be told, and their end. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect, createServer } from "node:net";

/** One that nobody listened on a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Whether a connection to it is taken. */
export function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => done(true)).once("error", () => done(false));
    socket.once("connect", () => socket.destroy());
  });
}

const SETPRIV = "/usr/bin/setpriv";

/** Whether `endingWithUs` has an effect. */
export const endsWithUs = existsSync(SETPRIV);

/** The command line of a program that the system ends with this process, however that ends (Linux). */
export const endingWithUs = (...words: readonly [string, ...string[]]): readonly [string, ...string[]] =>
  endsWithUs ? [SETPRIV, "--pdeathsig", "KILL", ...words] : words;
