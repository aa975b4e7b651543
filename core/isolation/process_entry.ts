/**
 * The program of a sandboxed process: runs one instance of a module. Descriptor 3 is the socket of
 * the channel to the host. Descriptors 4 and 5 are sockets that listen already, because a sandbox
 * can create none: for requests, and for connections that the host opens for the module.
 */
import { writeSync } from "node:fs";
import { createServer, Server, Socket } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { listen } from "../ports/listen.ts";
import type { MessageEndpoint } from "../relay/channel.ts";
import { FrameDecoder, frameOf } from "../relay/frames.ts";
import { currentRequest, limitFetch } from "./current_request.ts";
import { runInstance } from "./instance_program.ts";
import type { SandboxStart } from "./messages.ts";
import type { CarriedEnds } from "./network/broker.ts";
import { type ReplacedNetwork, replaceNetwork } from "./network/replace_network.ts";
import type { CarriedPort } from "./network/sandbox_servers.ts";
import { refusalIn } from "./runner_kind.ts";

const CHANNEL = 3;
const LISTENER = 4;
const CONNECTIONS = 5;

/** Milliseconds to wait until the host has read something of what it was sent. */
const FULL_MS = 1;

const { source, loadTimeout, maxMessage, subrequests, paths, certificate } = JSON.parse(
  process.argv[2] as string,
) as SandboxStart;
// The module sees the arguments that a module of a worker sees.
process.argv.length = 2;
if (certificate !== undefined) setDefaultCACertificates([...getCACertificates(), certificate]);

const socket = new Socket({ fd: CHANNEL, readable: true, writable: false });
const { exit } = process;
// The host has ended, or wants this process to end.
socket.on("close", () => exit(0));
socket.on("error", () => exit(0));

/**
 * Writes at once, as a message of a worker is sent at once: a module may exit in its next
 * statement. While the host does not read, nothing else runs here.
 */
const write = writeSync;
const pause = new Int32Array(new SharedArrayBuffer(4));
const { wait } = Atomics;
function send(frame: Buffer): void {
  for (let at = 0; at < frame.length; ) {
    try {
      at += write(CHANNEL, frame, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") exit(0);
      wait(pause, 0, 0, FULL_MS);
    }
  }
}

const host: MessageEndpoint = {
  postMessage: (message) => send(frameOf(message, maxMessage)),
  on(_event, listener) {
    const reader = new FrameDecoder();
    socket.on("data", (piece) => {
      reader.push(piece as Buffer);
      for (let next = reader.next(); next !== undefined; next = reader.next()) listener(next.value);
    });
  },
};

const connections = createServer({ allowHalfOpen: true, pauseOnConnect: true });
// Node.js listens at once: no code of the module has run yet.
connections.listen(paths === undefined ? { fd: CONNECTIONS } : { path: paths.connections });
const { listen: listenNatively } = Server.prototype;
const channel = runInstance({
  source,
  loadTimeout,
  kind: "sandbox",
  host,
  handlers: { accepted: (server: number, ends: CarriedEnds) => network.accepted(server, ends) },
  listen: (server) => {
    // The module's own servers are refused from now on.
    Object.defineProperty(server, "listen", { value: listenNatively });
    return listen(server, paths === undefined ? { fd: LISTENER } : { path: paths.requests });
  },
});
const refuse = refusalIn("sandbox");
const network: ReplacedNetwork = replaceNetwork({
  dial: (name, port) => channel.call("dial", name, port, currentRequest.getStore()?.id) as Promise<CarriedEnds>,
  listen: (address, port) => channel.call("openPort", address, port) as Promise<CarriedPort>,
  unlisten: (id) => channel.notify("closePort", id),
  refuse: (what) => {
    const { name } = source;
    const remedy = `it can only connect to what modules.${name}.grant.connect names, and listen on the TCP ports that modules.${name}.grant.listen names`;
    return refuse(what, remedy);
  },
});
connections.on("connection", network.carried);
limitFetch(source.name, subrequests);
