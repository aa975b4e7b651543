/** Helpers for programs that tests start: whether they listen, and how they end. */
import { existsSync } from "node:fs";
import { connect } from "node:net";

/** Resolves to whether something accepts connections at this port of the loopback. */
export function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => done(true)).once("error", () => done(false));
    socket.once("connect", () => socket.destroy());
  });
}

const SETPRIV = "/usr/bin/setpriv";

/** Whether `endingWithUs` has an effect on this system. */
export const endsWithUs = existsSync(SETPRIV);

/**
 * Returns the command line of a program that Linux ends with this process, however this process
 * ends.
 */
export const endingWithUs = (...words: readonly [string, ...string[]]): readonly [string, ...string[]] =>
  endsWithUs ? [SETPRIV, "--pdeathsig", "KILL", ...words] : words;
