#!/usr/bin/env node
// Starts the program. Plain, old-fashioned JavaScript: it must parse on a Node that is too old for the rest, so that the
// remedy can be told, or a newer Node that is installed beside the package can take over.
import { spawn } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { isIPv6 } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// From this version on Node asks before it takes a request for an upgrade.
const needed = [24, 9];
const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const source = join(here, "main.ts");
const fromSource = existsSync(source);
const main = fromSource ? source : join(root, "dist", "core", "cli", "main.js");
/** Options of Node that open an inspector: of `modhost run`, they are meant for the process that runs the modules. */
const isInspection = (word) => /^--inspect(-brk|-wait)?(=|$)/.test(word);

/** With the brackets that Node wants around an IPv6 address. */
function asNodeTakesIt(option) {
  const value = option.split("=")[1];
  return value !== undefined && isIPv6(value) ? option.replace(value, `[${value}]`) : option;
}

/** The host of the address that an inspector is to listen at; undefined where Node chooses. */
const hostOf = (option) => (/^[^=]+=(?!\d+$)(\[[^\]]*\]|[^:]+)/.exec(option) || [])[1];
const isLocal = (host) => /^(localhost|127\.[\d.]+|\[::1\])$/i.test(host);

function warnOfInspection(options) {
  for (const host of options.map(hostOf)) {
    if (host === undefined || isLocal(host)) continue;
    console.error(`modhost: a debugger listens on ${host}: whoever reaches it there can run any code as this user`);
  }
}

/** The words of the command line, and those among them that are meant for Node. */
function split(words) {
  const end = words.indexOf("--");
  const own = end < 0 ? words : words.slice(0, end);
  const [command] = own.filter(isName);
  // These read every word behind their name themselves.
  if (command === "rpc" || command === "node") return { words, inspection: [] };
  const rest = own.filter((word) => !isInspection(word));
  return { words: rest.concat(words.slice(own.length)), inspection: own.filter(isInspection).map(asNodeTakesIt) };
}

const isName = (word) => word[0] !== "-";

/** What Node is run with. A package needs nothing, and starts it once. */
const flags = fromSource ? ["--conditions=source"] : [];

function isEnough(version) {
  const [major, minor] = version.replace(/^v/, "").split(".").map(Number);
  return major > needed[0] || (major === needed[0] && minor >= needed[1]);
}

/** The executable of the npm package `node`, installed for this package or beside it, when it is new enough. */
function newerNode() {
  const folders = [join(root, "node_modules", "node"), join(root, "..", "node")];
  for (const folder of folders) {
    const manifest = join(folder, "package.json");
    const file = join(folder, "bin", process.platform === "win32" ? "node.exe" : "node");
    if (!existsSync(manifest) || !existsSync(file)) continue;
    if (isEnough(JSON.parse(readFileSync(manifest, "utf8")).version)) return file;
  }
  return undefined;
}

/** In the environment of a child that this program runs in: it has a channel to its parent, and nothing to say there. */
const launched = "MODHOST_LAUNCHED";

/** Whoever kills the process that they have started, and cannot be heard of it there, kills this one. */
function endWithParent() {
  if (process.env[launched] === undefined) return;
  delete process.env[launched];
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel.unref();
}

/** Listening sockets that systemd has given to this process: Node lets go of them when it is replaced, but a child gets them. */
const sockets = Array.from(
  { length: Number(process.env.LISTEN_PID) === process.pid ? Number(process.env.LISTEN_FDS) || 0 : 0 },
  (_, at) => 3 + at,
);

/** Replaces this process where Node can, else runs a child and ends as it does. */
function hand(executable, args) {
  if (typeof process.execve === "function" && process.platform !== "win32" && sockets.length === 0) {
    process.execve(executable, [executable].concat(args), process.env);
  }
  const env = Object.assign({}, process.env, { [launched]: "1" });
  const child = spawn(executable, args, { stdio: ["inherit", "inherit", "inherit"].concat(sockets, "ipc"), env });
  const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR2"];
  const forward = (signal) => child.kill(signal);
  for (const signal of signals) process.on(signal, forward);
  child.on("error", (error) => {
    console.error(`modhost: ${executable} cannot be started: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    for (const each of signals) process.removeListener(each, forward);
    process.kill(process.pid, signal);
  });
}

/**
 * For what is compiled: a folder of this user into which nobody else can write, since whoever writes there has their code run here.
 * Undefined where there is none. Node's own choice is a folder that the first user of the machine makes for all.
 */
function privateFolder() {
  const { getuid } = process;
  if (getuid === undefined) return join(tmpdir(), "modhost-compiled");
  const uid = getuid();
  const folder = join(tmpdir(), `modhost-compiled-${uid}`);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {} // It is there, or cannot be, which shows now.
  try {
    const [above, own] = [statSync(tmpdir()), lstatSync(folder)];
    const isKept =
      (above.uid === uid || above.uid === 0) && ((above.mode & 0o022) === 0 || (above.mode & 0o1000) !== 0);
    return isKept && own.isDirectory() && own.uid === uid && (own.mode & 0o022) === 0 ? folder : undefined;
  } catch {
    return undefined;
  }
}

/** A clone in which nothing has been installed yet: what is needed is a command away. */
const isBare = existsSync(join(root, "package-lock.json")) && !existsSync(join(root, "node_modules"));
const remedy = isBare
  ? "Run npm ci first."
  : `Install it from https://nodejs.org, or put it beside the program: npm install node@${needed[0]}`;

const { words, inspection } = split(process.argv.slice(2));
const isNewEnough = isEnough(process.version);
const executable = isNewEnough ? process.execPath : newerNode();
if (executable === undefined) {
  console.error(`modhost needs Node.js ${needed.join(".")} or newer, and this is ${process.version}. ${remedy}`);
  process.exit(1);
} else if (isBare) {
  console.error(`modhost: the packages that it needs are not installed. ${remedy}`);
  process.exit(1);
} else if (isNewEnough && inspection.length === 0 && flags.every((flag) => process.execArgv.indexOf(flag) >= 0)) {
  // What was compiled once starts faster the next time, and what strips types need not be loaded: a sixth of the memory
  // of an idle server.
  const compiled = process.env.NODE_COMPILE_CACHE || privateFolder();
  if (compiled !== undefined) nodeModule.enableCompileCache(compiled);
  endWithParent();
  import(pathToFileURL(main).href);
} else {
  import("node:inspector").then((inspector) => {
    // Its port is for the process that takes over, which is given the same options.
    if (inspector.url() !== undefined) inspector.close();
    warnOfInspection(inspection);
    const given = isNewEnough ? process.execArgv : process.execArgv.filter(isInspection);
    hand(executable, given.concat(flags, inspection, [fileURLToPath(import.meta.url)], words));
  });
}
