/**
 * The program is two scripts: the host's, and the node's, which is read when something of it is
 * needed. V8 keeps what it has compiled of each in a file, those functions too that were called
 * while it ran: of modules, Node keeps what was compiled before they ran, and each start compiles
 * their functions again.
 */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire, getCompileCacheDir } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Script } from "node:vm";
import { isMainThread } from "node:worker_threads";
import { crc32 } from "node:zlib";

/**
 * Digests of the scripts' texts, and the names of the parts that are in the second script: the
 * build puts them here.
 */
const { digests, nodeParts } = "FACTS";
/** By then a server has answered its first requests. */
const KEPT_AFTER_MS = 5000;
/** What nobody has made again for so long belongs to a version that may be gone. */
const MAX_AGE_MS = 60 * 86_400_000;
const CHECKSUM_BYTES = 4;

const files = { host: "program.js", node: "program_node.js" };
const folder = new URL(".", import.meta.url).href;
const isServer = serves(process.argv.slice(2));
const ofNode = new Set(nodeParts);
const require = createRequire(import.meta.url);
/** Files of packages that are a part of a script, but for their machine code. */
const installed = {
  get lmdb() {
    return require.resolve("lmdb");
  },
};
const host = load("host");
let node;

/** What is read here is not held beyond it. */
function load(name) {
  const filename = fileURLToPath(new URL(files[name], import.meta.url));
  const kept = keptFile(name);
  const cachedData = kept === undefined ? undefined : read(kept);
  const source = readFileSync(filename, "latin1");
  const script = new Script(source, cachedData === undefined ? { filename } : { filename, cachedData });
  if (kept !== undefined && isMainThread && (cachedData === undefined || script.cachedDataRejected)) {
    const keepAtExit = (code) => {
      // A server that could not start has not called much of what servers call.
      if (!isServer || code === 0) keep(script, kept);
    };
    process.once("exit", keepAtExit);
    setTimeout(() => {
      process.removeListener("exit", keepAtExit);
      keep(script, kept);
    }, KEPT_AFTER_MS).unref();
  }
  return script.runInThisContext()(require, import.meta, importLate, part, installed);
}

/**
 * Resolves to a part that this script contains. Node would load the part's file of exports instead,
 * which in turn requests the part.
 */
function importLate(name) {
  const [file] = name.split("?");
  const own = file.startsWith(folder) && file.endsWith(".js") ? file.slice(folder.length, -".js".length) : undefined;
  return own !== undefined && (ofNode.has(own) || Object.hasOwn(host, own)) ? Promise.try(part, own) : import(name);
}

/** What a source exports; the first call evaluates it. */
export function part(name) {
  const parts = ofNode.has(name) ? (node ??= load("node")) : host;
  return parts[name]();
}

/** Options and modules of the command that serves may come without its name. */
function serves(words) {
  if (words.some((word) => /^(--version|--help|-h)$/.test(word))) return false;
  return !/^[a-z]+$/.test(words[0]) || words[0] === "run" || words.includes("daemon");
}

/**
 * In the folder for this version of Node; undefined where nothing is kept. Servers call other
 * functions than commands.
 */
function keptFile(name) {
  const folder = getCompileCacheDir();
  return folder === undefined
    ? undefined
    : join(folder, `modhost-${name}-${isServer ? "server" : "command"}-${digests[name]}`);
}

/**
 * Undefined where nothing is kept, where it is damaged, and where somebody else could have written
 * it.
 */
function read(file) {
  let opened;
  try {
    opened = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    const { uid, mode } = fstatSync(opened);
    if (process.getuid !== undefined && (uid !== process.getuid() || (mode & 0o022) !== 0)) return undefined;
    const bytes = readFileSync(opened);
    const data = bytes.subarray(CHECKSUM_BYTES);
    return bytes.length > CHECKSUM_BYTES && crc32(data) === bytes.readUInt32LE() ? data : undefined;
  } catch {
    return undefined;
  } finally {
    if (opened !== undefined) closeSync(opened);
  }
}

function keep(script, kept) {
  const made = `${kept}.${process.pid}`;
  try {
    const data = script.createCachedData();
    const checksum = Buffer.alloc(CHECKSUM_BYTES);
    checksum.writeUInt32LE(crc32(data));
    writeFileSync(made, Buffer.concat([checksum, data]), { mode: 0o600, flag: "wx" });
    renameSync(made, kept);
    removeOld(join(kept, ".."));
  } catch {
    // The next start takes as long as this one.
    rmSync(made, { force: true });
  }
}

function removeOld(folder) {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    if (name.startsWith("modhost-") && statSync(file).mtimeMs < Date.now() - MAX_AGE_MS) rmSync(file, { force: true });
  }
}
