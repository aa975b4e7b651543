/**
 * The program that becomes a sandboxed process. It restricts itself step by step, and then executes
 * Node.js again. The kernel's restrictions of the thread that does this hold for every thread of
 * the new program. Within a running Node they would miss the threads that exist already.
 *
 * It reads a `LauncherSpec` from descriptor 4, or from its argument: then it executes nothing and
 * prints a `ProbeReport`.
 */
import { accessSync, constants, readFileSync, writeSync } from "node:fs";
import { become, keepOnly, listenAt, prepare } from "./kernel/become.ts";
import { landlockAbi, restrictFiles, SCOPES_SIGNALS } from "./kernel/landlock.ts";
import { Libc } from "./kernel/libc.ts";
import { architecture, calls } from "./kernel/numbers.ts";
import { dropPrivileges, endWithParent, setLimits } from "./kernel/rights.ts";
import { refusePrivileges, restrictCalls } from "./kernel/seccomp.ts";
import { CHANNEL, COMPILED, CONNECTIONS, type LauncherSpec, LISTENER, NOT_STARTED, type ProbeReport } from "./spec.ts";

const [, , argument] = process.argv;
let abi = 0;
let step = "ffi";

function launch(spec: LauncherSpec): void {
  const libc = new Libc();
  step = "cgroup";
  if (spec.hasCgroup) writeSync(CONNECTIONS, "0");
  step = "landlock";
  abi = Math.min(landlockAbi(libc), spec.landlockAbi ?? Number.POSITIVE_INFINITY);
  if (abi === 0) throw new Error("this kernel has no Landlock, or it is switched off");
  step = "limits";
  // A signal to the own process group must not reach the server. The leader of a group fails here.
  libc.try(calls.setsid);
  setLimits(libc, spec.limits);
  step = "socket";
  if (spec.listen !== undefined) listenAt(libc, spec.listen, LISTENER);
  if (spec.listenForConnections !== undefined) listenAt(libc, spec.listenForConnections, CONNECTIONS);
  const start = prepare(libc, spec.node, spec.args, spec.env);
  step = "user";
  dropPrivileges(libc, spec.user);
  endWithParent(libc, spec.parent);
  if (spec.program !== undefined) accessSync(spec.program, constants.R_OK);
  step = "landlock";
  refusePrivileges(libc);
  // Listing the descriptors needs /proc, which is out of reach afterwards.
  const sockets = [CHANNEL, LISTENER, ...(spec.listenForConnections === undefined ? [] : [CONNECTIONS])];
  keepOnly(libc, [0, 1, 2, ...sockets, COMPILED]);
  const pinned = restrictFiles(libc, abi, spec.rules);
  for (const fd of pinned) keepOpen(libc, fd);
  step = "seccomp";
  restrictCalls(libc, {
    architecture,
    pid: process.pid,
    run: spec.run,
    areSignalsInside: spec.isInNamespace || abi >= SCOPES_SIGNALS,
    start: [start.path, start.args, start.env],
  });
  step = "program";
  if (argument === undefined) become(libc, start);
  report();
  // The event loop of this process already uses io_uring, which the filter refuses: it would abort.
  libc.try(calls.exit_group, 0);
}

const F_SETFD = 2;

function keepOpen(libc: Libc, fd: number): void {
  libc.call("fcntl", calls.fcntl, fd, F_SETFD, 0);
}

function report(failed?: ProbeReport["failed"]): void {
  writeSync(1, JSON.stringify({ landlockAbi: abi, ...(failed && { failed }) } satisfies ProbeReport));
}

try {
  launch(JSON.parse(argument ?? readFileSync(LISTENER, "utf8")));
} catch (error) {
  const { message } = error as Error;
  if (argument === undefined) {
    writeSync(2, `The sandbox cannot start (${step}): ${message}\n`);
    process.exitCode = NOT_STARTED;
  } else report({ step, reason: message });
}
