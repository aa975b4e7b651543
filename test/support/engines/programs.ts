/** Programs that tests start: whether they listen, and their end. */
import { existsSync } from "node:fs";
import { connect } from "node:net";

/** Whether a connection to this port of the loopback is taken. */
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

/**
 * The command line of a program that the system ends with this process, however that ends (Linux).
 */
export const endingWithUs = (...words: readonly [string, ...string[]]): readonly [string, ...string[]] =>
  endsWithUs ? [SETPRIV, "--pdeathsig", "KILL", ...words] : words;
