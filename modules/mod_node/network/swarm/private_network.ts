/** Reads the pre-shared key of a private network from the file `swarm.key` of the repo. */
import { join } from "node:path";
import { readPlainFile } from "../../storage/plain_file.ts";
import { failure } from "../../util/errors.ts";

const HEADER = "/key/swarm/psk/1.0.0/";
const KEY_SIZE = 32;

/**
 * Resolves to undefined without such a file.
 *
 * @throws NodeError for a file without a key, and for a missing file if LIBP2P_FORCE_PNET is `1`
 */
export async function readSwarmKey(repo: string): Promise<Uint8Array | undefined> {
  const bytes = await readPlainFile(join(repo, "swarm.key")).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw failure("SWARM_KEY_INVALID", { reason: `failed to read the swarm key: ${error.message}` }, error);
  });
  if (bytes !== undefined) return decodeSwarmKey(bytes);
  if (process.env.LIBP2P_FORCE_PNET === "1") {
    throw failure("SWARM_KEY_INVALID", {
      reason: "privnet: private network was not configured but is enforced by the environment",
    });
  }
  return undefined;
}

/**
 * Returns the key in a file: two lines, then the key in the encoding that the second line names.
 * @throws NodeError
 */
export function decodeSwarmKey(file: Uint8Array): Uint8Array {
  const bytes = Buffer.from(file);
  const refused = (reason: string) =>
    failure("SWARM_KEY_INVALID", { reason: `failed to configure private network: ${reason}` });
  const [first, afterFirst] = lineOf(bytes, 0);
  if (first !== HEADER) throw refused("the swarm key does not begin with /key/swarm/psk/1.0.0/");
  const [encoding, afterSecond] = lineOf(bytes, afterFirst);
  const key = decoded(encoding, bytes.subarray(afterSecond));
  if (key === undefined) throw refused(`unknown encoding of the swarm key: ${encoding}`);
  if (key.length !== KEY_SIZE) throw refused("the swarm key is not 32 bytes long");
  return key;
}

function lineOf(bytes: Buffer, start: number): readonly [line: string, next: number] {
  const at = bytes.indexOf(0x0a, start);
  const end = at < 0 ? bytes.length : at;
  return [bytes.toString("latin1", start, end).trim(), Math.min(end + 1, bytes.length)];
}

function decoded(encoding: string, rest: Buffer): Buffer | undefined {
  if (encoding === "/bin/") return rest.subarray(0, KEY_SIZE);
  const text = rest.toString("latin1").trim();
  if (encoding === "/base16/") return Buffer.from(text, "hex");
  if (encoding === "/base64/") return Buffer.from(text, "base64");
  return undefined;
}

/** Returns the file's text in the form that libp2p's connection protector reads. */
export function encodeSwarmKey(key: Uint8Array): Uint8Array {
  return Buffer.from(`${HEADER}\n/base16/\n${Buffer.from(key).toString("hex")}\n`);
}
