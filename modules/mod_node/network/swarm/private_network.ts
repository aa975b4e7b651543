/** The key that makes a network private: the file `swarm.key` of the repo. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { NodeError } from "../../util/errors.ts";

const header = "/key/swarm/psk/1.0.0/";
const keyLength = 32;

/**
 * Undefined where there is none.
 *
 * @throws NodeError of a file that holds no key, and of a missing one where LIBP2P_FORCE_PNET is `1`
 */
export async function readSwarmKey(repo: string): Promise<Uint8Array | undefined> {
  const bytes = await readFile(join(repo, "swarm.key")).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new NodeError(`failed to read the swarm key: ${error.message}`, { cause: error });
  });
  if (bytes !== undefined) return decodeSwarmKey(bytes);
  if (process.env.LIBP2P_FORCE_PNET === "1") {
    throw new NodeError("privnet: private network was not configured but is enforced by the environment");
  }
  return undefined;
}

/** Two lines, and the key in the encoding that the second one names. @throws NodeError */
export function decodeSwarmKey(file: Uint8Array): Uint8Array {
  const bytes = Buffer.from(file);
  const refused = (reason: string) => new NodeError(`failed to configure private network: ${reason}`);
  const [first, afterFirst] = lineOf(bytes, 0);
  if (first !== header) throw refused("the swarm key does not begin with /key/swarm/psk/1.0.0/");
  const [encoding, afterSecond] = lineOf(bytes, afterFirst);
  const key = decoded(encoding, bytes.subarray(afterSecond));
  if (key === undefined) throw refused(`unknown encoding of the swarm key: ${encoding}`);
  if (key.length !== keyLength) throw refused("the swarm key is not 32 bytes long");
  return key;
}

function lineOf(bytes: Buffer, start: number): readonly [line: string, next: number] {
  const at = bytes.indexOf(0x0a, start);
  const end = at < 0 ? bytes.length : at;
  return [bytes.toString("latin1", start, end).trim(), Math.min(end + 1, bytes.length)];
}

function decoded(encoding: string, rest: Buffer): Buffer | undefined {
  if (encoding === "/bin/") return rest.subarray(0, keyLength);
  const text = rest.toString("latin1").trim();
  if (encoding === "/base16/") return Buffer.from(text, "hex");
  if (encoding === "/base64/") return Buffer.from(text, "base64");
  return undefined;
}

/** As libp2p's protector reads it. */
export function encodeSwarmKey(key: Uint8Array): Uint8Array {
  return Buffer.from(`${header}\n/base16/\n${Buffer.from(key).toString("hex")}\n`);
}
