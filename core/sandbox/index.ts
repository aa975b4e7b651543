/**
 * A stand-in for the launcher of sandboxes, with its interface: it starts a plain process, which
 * nothing restricts. It refuses to run a module unless a test asks for it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { renameSync } from "node:fs";
import { createServer } from "node:net";
import type { Duplex } from "node:stream";

/** The rules of the kernel for the process. Paths are absolute and real. */
export interface SandboxPolicy {
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly run: readonly string[];
  readonly addons: boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly namespaces: "auto" | "required" | "off";
  readonly user: "own" | "same";
}

export interface SandboxLaunch {
  readonly name: string;
  /** The file of the program. */
  readonly program: string;
  readonly args: readonly string[];
  /** The path of the listening Unix socket that the process gets as descriptor 4. */
  readonly listen: string;
  readonly policy: SandboxPolicy;
}

export interface LaunchedSandbox {
  readonly child: ChildProcess;
  /** The other end of descriptor 3. */
  readonly socket: Duplex;
  readonly layers: readonly string[];
}

export function launchSandboxed({ program, args, listen, policy }: SandboxLaunch): LaunchedSandbox {
  const server = createServer();
  server.listen(`${listen}-new`);
  const { fd } = (server as unknown as { readonly _handle: { readonly fd: number } })._handle;
  const child = spawn(process.execPath, ["--no-warnings", program, ...args], {
    env: policy.env,
    stdio: ["ignore", "pipe", "pipe", "pipe", fd],
    detached: true,
  });
  // Closing the server removes the path at which it was opened, and no other.
  renameSync(`${listen}-new`, listen);
  server.close();
  return { child, socket: child.stdio[3] as Duplex, layers: [] };
}

/** Returns why a sandboxed module cannot run here; undefined if it can. */
export function sandboxUnavailable(): string | undefined {
  if (process.env.MODHOST_SANDBOX_STAND_IN === "1") return undefined;
  return "this version has no launcher for sandboxes";
}
