/**
 * Loads the program from its scripts: the host's, and others that are read when they are first
 * needed. After a while V8's compiled code of each script is written to a cache file, including the
 * functions that were called until then. Node's own cache for modules contains only what was
 * compiled before they ran, so each start would compile their functions again.
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
 * Digests of the scripts' texts, and the names of the parts in all scripts but the host's. The
 * build inserts them here.
 */
const { digests, groups } = "FACTS";
/** Delay after which the cache is written: a server has responded to its first requests by then. */
const CACHE_AFTER_MS = 5000;
/** Age at which a cache file is removed: its version of modhost may no longer exist. */
const MAX_AGE_MS = 60 * 86_400_000;
const CHECKSUM_BYTES = 4;

const files = { host: "program.js", node: "program_node.js", packages: "program_packages.js" };
const folder = new URL(".", import.meta.url).href;
/**
 * The descriptor at which the process of a sandboxed module finds the server's cache of the first
 * script. It can open no cache itself, and its code must not write one that others use.
 */
const SANDBOX_CACHE = 6;
const isSandbox = process.argv[1] === fileURLToPath(new URL("core/isolation/process_entry.js", import.meta.url));
/** Returns a descriptor of the cache of the first script; undefined without one. */
import.meta.openCompiled = () => {
  const file = isSandbox ? undefined : cacheFileOf("host");
  return file === undefined ? undefined : openCache(file);
};
const isServer = serves(process.argv.slice(2));
/** The scripts of the parts that are not in the host's. */
const scriptOf = new Map(Object.entries(groups).flatMap(([script, parts]) => parts.map((part) => [part, script])));
const require = createRequire(import.meta.url);
/** Positions of files that bundled packages look for. */
const installed = {
  /** The folder of the program, in which they find none of their own files. */
  folder: fileURLToPath(new URL(".", import.meta.url)),
  /** Its machine code is in the installed package. */
  get lmdb() {
    return require.resolve("lmdb");
  },
};
const host = load("host");
/** The tables of the other scripts. */
const loaded = new Map();

/** A function of its own, so that the texts and caches it reads can be garbage-collected. */
function load(name) {
  const filename = fileURLToPath(new URL(files[name], import.meta.url));
  const cacheFile = cacheFileOf(name);
  const cachedData = isSandbox ? readOpened(SANDBOX_CACHE) : readCache(cacheFile);
  const source = readFileSync(filename, "latin1");
  const script = new Script(source, cachedData === undefined ? { filename } : { filename, cachedData });
  if (cacheFile !== undefined && isMainThread && (cachedData === undefined || script.cachedDataRejected)) {
    const writeAtExit = (code) => {
      // A server that could not start has called few of the functions that servers need.
      if (!isServer || code === 0) writeCache(script, cacheFile);
    };
    process.once("exit", writeAtExit);
    setTimeout(() => {
      process.removeListener("exit", writeAtExit);
      writeCache(script, cacheFile);
    }, CACHE_AFTER_MS).unref();
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
  return own !== undefined && (scriptOf.has(own) || Object.hasOwn(host, own)) ? Promise.try(part, own) : import(name);
}

/** Returns the exports of a source. The first call evaluates it. */
export function part(name) {
  const script = scriptOf.get(name);
  if (script === undefined) return host[name]();
  if (!loaded.has(script)) loaded.set(script, load(script));
  return loaded.get(script)[name]();
}

/**
 * Returns whether the command line starts a server: the name of the command `run` may be left out.
 */
function serves(words) {
  if (words.some((word) => /^(--version|--help|-h)$/.test(word))) return false;
  return !/^[a-z]+$/.test(words[0]) || words[0] === "run" || words.includes("daemon");
}

/**
 * Returns the cache file for this version of Node, or undefined without a cache. Servers and
 * commands have different files, because they call different functions.
 */
function cacheFileOf(name) {
  const folder = getCompileCacheDir();
  return folder === undefined || isSandbox
    ? undefined
    : join(folder, `modhost-${name}-${isServer ? "server" : "command"}-${digests[name]}`);
}

/** Returns undefined if the file is missing, or if another user could have written it. */
function openCache(file) {
  let opened;
  try {
    opened = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    const { uid, mode } = fstatSync(opened);
    if (process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0)) return opened;
    closeSync(opened);
  } catch {
    // There is no cache yet.
  }
  return undefined;
}

/** Returns undefined without a file, or if it is damaged. */
function readCache(file) {
  const opened = file === undefined ? undefined : openCache(file);
  return opened === undefined ? undefined : readOpened(opened);
}

/** Reads a cache and closes it. Returns undefined if it is damaged, or nothing is open there. */
function readOpened(opened) {
  try {
    // Without a cache it is /dev/null, or in another program any descriptor of Node.js.
    if (!fstatSync(opened).isFile()) return undefined;
    const bytes = readFileSync(opened);
    closeSync(opened);
    const data = bytes.subarray(CHECKSUM_BYTES);
    return bytes.length > CHECKSUM_BYTES && crc32(data) === bytes.readUInt32LE() ? data : undefined;
  } catch {
    return undefined;
  }
}

function writeCache(script, file) {
  const made = `${file}.${process.pid}`;
  try {
    const data = script.createCachedData();
    const checksum = Buffer.alloc(CHECKSUM_BYTES);
    checksum.writeUInt32LE(crc32(data));
    writeFileSync(made, Buffer.concat([checksum, data]), { mode: 0o600, flag: "wx" });
    renameSync(made, file);
    removeOld(join(file, ".."));
  } catch {
    // Without the cache, the next start takes as long as this one.
    rmSync(made, { force: true });
  }
}

function removeOld(folder) {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    if (name.startsWith("modhost-") && statSync(file).mtimeMs < Date.now() - MAX_AGE_MS) rmSync(file, { force: true });
  }
}
