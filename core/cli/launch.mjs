#!/usr/bin/env node
// Starts the program. Plain, old-fashioned JavaScript: it must parse on a Node that is too old for
// the rest, so that it can print the remedy, or start a newer Node that is installed next to the
// package.
import { spawn } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { isIPv6 } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// The HTTP server needs `shouldUpgradeCallback`, which Node.js has since this version.
const needed = [24, 9];
const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
/**
 * Whether a word is an option of Node.js that opens an inspector. After `modhost run`, such an
 * option is for the process that runs the modules.
 */
const isInspection = (word) => /^--inspect(-brk|-wait)?(=|$)/.test(word);

/** Returns the option with brackets around an IPv6 address, as Node.js requires. */
function asNodeTakesIt(option) {
  const value = option.split("=")[1];
  return value !== undefined && isIPv6(value) ? option.replace(value, `[${value}]`) : option;
}

/** Returns the host that an inspector is to listen on; undefined if Node.js chooses it. */
const hostOf = (option) => (/^[^=]+=(?!\d+$)(\[[^\]]*\]|[^:]+)/.exec(option) || [])[1];
const isLocal = (host) => /^(localhost|127\.[\d.]+|\[::1\])$/i.test(host);

function warnOfInspection(options) {
  for (const host of options.map(hostOf)) {
    if (host === undefined || isLocal(host)) continue;
    console.error(`modhost: a debugger listens on ${host}: anybody who can reach it can run code as this user`);
  }
}

const isName = (word) => word[0] !== "-";

/**
 * Commands that serve until they are stopped: package.json lists them, since the launcher starts
 * before any module is known.
 */
function serving() {
  const { modhost = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return modhost.serving || [];
}

/**
 * Splits the words of the command line into those for Node.js and the others. Words after the name
 * of a command belong to the command. After `run`, options of Node.js are for the process that runs
 * the modules.
 */
function split(words) {
  const end = words.indexOf("--");
  const own = end < 0 ? words : words.slice(0, end);
  const plain = own.filter((word) => !isInspection(word));
  // A word behind an option may be its value.
  const command = plain.find((word, at) => isName(word) && (at === 0 || isName(plain[at - 1])));
  const isRun = command === undefined || command === "run" || existsSync(command);
  const to = isRun ? own.length : own.indexOf(command);
  const isForNode = (word, at) => at < to && isInspection(word);
  const rest = own.filter((word, at) => !isForNode(word, at));
  return { words: rest.concat(words.slice(own.length)), inspection: own.filter(isForNode).map(asNodeTakesIt) };
}

/**
 * True for commands that serve, and for files and folders to serve. All other commands end quickly.
 */
function runsForLong(words) {
  const named = words.filter(isName);
  if (named.length === 0 || named.some((word) => word === "run" || existsSync(word))) return true;
  const others = serving();
  return named.some((word) => others.indexOf(word) >= 0);
}

function isEnough(version) {
  const [major, minor] = version.replace(/^v/, "").split(".").map(Number);
  return major > needed[0] || (major === needed[0] && minor >= needed[1]);
}

/**
 * Packages of npm that contain Node.js: that of this machine, which has no install script, and
 * `node`, whose script fetches it.
 */
const nodePackages = [
  ["node", process.platform === "win32" ? "win" : process.platform, process.arch].join("-"),
  "node",
];

/**
 * Returns the executable of a platform package of Node.js that is new enough, installed for this
 * package or next to it.
 */
function newerNode() {
  const candidates = nodePackages.map((name) => [join(root, "node_modules", name), join(root, "..", name)]);
  for (const folder of [].concat.apply([], candidates)) {
    const manifest = join(folder, "package.json");
    const file = join(folder, "bin", process.platform === "win32" ? "node.exe" : "node");
    if (!existsSync(manifest) || !existsSync(file)) continue;
    if (isEnough(JSON.parse(readFileSync(manifest, "utf8")).version)) return file;
  }
  return undefined;
}

/**
 * Set in the environment of the child that runs the program. Its IPC channel carries no messages;
 * it only shows when the parent ends.
 */
const launched = "MODHOST_LAUNCHED";

/**
 * Ends this process when its parent is killed, because a killed parent cannot end it.
 */
function endWithParent() {
  if (process.env[launched] === undefined) return;
  delete process.env[launched];
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel.unref();
}

/**
 * Listening sockets that systemd has given to this process. They are lost when `execve` replaces
 * the process, but a child inherits them.
 */
const sockets = Array.from(
  { length: Number(process.env.LISTEN_PID) === process.pid ? Number(process.env.LISTEN_FDS) || 0 : 0 },
  (_, at) => 3 + at,
);

/**
 * Replaces this process if Node.js can do that. Otherwise it runs a child, and exits as the child
 * does.
 */
function hand(executable, args) {
  if (typeof process.execve === "function" && process.platform !== "win32" && sockets.length === 0) {
    process.execve(executable, [executable].concat(args), process.env);
  }
  const env = Object.assign({}, process.env, { [launched]: "1" });
  const child = spawn(executable, args, { stdio: ["inherit", "inherit", "inherit"].concat(sockets, "ipc"), env });
  const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"];
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
 * Returns a folder for compiled code that only this user can write to, because Node.js runs what it
 * finds there. Undefined if no such folder exists. Node's own default is a folder that the first
 * user of the machine creates for all users.
 */
function privateFolder() {
  const { getuid } = process;
  if (getuid === undefined) return join(tmpdir(), "modhost-compiled");
  const uid = getuid();
  const folder = join(tmpdir(), `modhost-compiled-${uid}`);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {} // The folder exists already, or cannot be created: the next check tells which.
  try {
    const above = statSync(tmpdir());
    const own = lstatSync(folder);
    const isSafe =
      (above.uid === uid || above.uid === 0) && ((above.mode & 0o022) === 0 || (above.mode & 0o1000) !== 0);
    return isSafe && own.isDirectory() && own.uid === uid && (own.mode & 0o022) === 0 ? folder : undefined;
  } catch {
    return undefined;
  }
}

const { words, inspection } = split(process.argv.slice(2));

/** With this flag the modules and the host are run from their sources, which only a clone has. */
const sources = "--conditions=source";
const source = join(here, "main.ts");
// With --watch, the sources of the bundled modules are watched, so they run from source.
const isWatching = runsForLong(words) && words.indexOf("--watch") >= 0;
const fromSource = existsSync(source) && (process.execArgv.indexOf(sources) >= 0 || isWatching);
const main = fromSource ? source : join(root, "dist", "core", "cli", "main.js");

/**
 * Whether this is a source tree that was not built, because its development packages are not
 * installed.
 */
const isUnbuilt = !existsSync(main);
const remedy = isUnbuilt ? "Run npm ci first, without --omit=dev." : "Install it from https://nodejs.org.";
const flags = fromSource ? [sources] : [];
// At SIGUSR1, Node.js would open its debugger to every user of the machine. A listener prevents
// that as the flag --disable-sigusr1 does, which would require a second start of Node.js.
process.on("SIGUSR1", () => undefined);
const isNewEnough = isEnough(process.version);
const executable = isNewEnough ? process.execPath : newerNode();
if (executable === undefined) {
  console.error(`modhost needs Node.js ${needed.join(".")} or newer, and this is ${process.version}. ${remedy}`);
  process.exit(1);
} else if (isUnbuilt) {
  console.error(`modhost: the program is not built. ${remedy}`);
  process.exit(1);
} else if (isNewEnough && inspection.length === 0 && flags.every((flag) => process.execArgv.indexOf(flag) >= 0)) {
  // Cached code starts faster the next time. The code that strips types is then not loaded either,
  // which saves a sixth of the memory of an idle server.
  const compiled = process.env.NODE_COMPILE_CACHE || privateFolder();
  if (compiled !== undefined) nodeModule.enableCompileCache(compiled);
  endWithParent();
  import(pathToFileURL(main).href);
} else {
  import("node:inspector").then((inspector) => {
    // The inspector closes first: the new process gets the same options, and needs the port.
    if (inspector.url() !== undefined) inspector.close();
    warnOfInspection(inspection);
    const given = isNewEnough ? process.execArgv : process.execArgv.filter(isInspection);
    const missing = flags.filter((flag) => given.indexOf(flag) < 0);
    hand(executable, given.concat(missing, inspection, [fileURLToPath(import.meta.url)], words));
  });
}
