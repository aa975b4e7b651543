/** The Unix socket of the Admin API. */
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { invalidOption, makePrivateFolder, reasonOf } from "../../core/index.ts";
import type { Module, NetEndpoint, RouteTable } from "../../core/types.ts";
import { openService } from "./service.ts";

/** Seconds between checks that the socket's file still exists. */
const LOOK_SECONDS = 10;

export function openSocket(module: Module, route: RouteTable): void {
  const own = module.get_option_path("admin_socket");
  const path = own ?? join(module.data_path(), "admin.sock");
  // At the first start the data folder does not exist yet. If it cannot be created, opening the
  // socket reports the error.
  if (own === undefined && module.serves()) makeDataFolder(module.data_path());
  module.load = async () => {
    if (module.serves() && !module.reloading) await refuseSecond(module, path, own === undefined);
  };
  const service = openService(module, { label: "admin socket", tables: { "/admin": route }, isPublic: false });
  const failed = (reason: string) => {
    const remedy = "set the option admin_socket to a short path in a folder of this user's own";
    module.set_status("warn", `Commands cannot reach the server: no socket at ${path} (${reason}); ${remedy}`);
  };
  let hasListened = false;
  const listening = () => {
    hasListened = true;
  };
  const endpoint: NetEndpoint = { path, mode: 0o600, failed, listening };
  let change: ((endpoints: readonly NetEndpoint[]) => Promise<void>) | undefined;
  module.provides("net", {
    name: "http_admin_socket",
    default_ports: [],
    endpoints: [endpoint],
    endpoints_change: (given) => {
      change = given;
    },
    half_open: true,
    onconnect: (socket) => service.listeners.connect(socket),
  });
  if (!module.serves()) return;
  // Programs that clean up /run and /tmp remove sockets that nobody has used for days.
  module.add_timer(LOOK_SECONDS, async () => {
    if (!hasListened || existsSync(path)) return LOOK_SECONDS;
    try {
      await change?.([]);
      await change?.([endpoint]);
      module.log.warn("The socket %s was removed from outside and has been created again", path);
    } catch (error) {
      failed(reasonOf(error));
    }
    return LOOK_SECONDS;
  });
}

function makeDataFolder(path: string): void {
  try {
    makePrivateFolder(path);
  } catch {}
}

/**
 * Refuses to start a second server, because both would write the same files, and commands for one
 * would reach the other. @throws {ModhostError} OPTION_INVALID when another server listens at the
 * socket
 */
async function refuseSecond(module: Module, path: string, isInDataPath: boolean): Promise<void> {
  const who = await listenerAt(path);
  if (who === undefined) return;
  const [name, taken, kind] = isInDataPath
    ? ["data_path", module.data_path(), "folder"]
    : ["admin_socket", path, "path"];
  throw invalidOption(name, taken, `${who} uses this ${kind}: stop it, or give this server its own ${kind}`);
}

/** Milliseconds that a server has to report its process number. */
const MAX_WAIT_MS = 2000;

/** Describes the process that listens at a socket; undefined when no process does. */
function listenerAt(path: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  let reply = "";
  let isListening = false;
  const socket = connect(path, () => {
    isListening = true;
    socket.write("GET /admin/api/status HTTP/1.0\r\nHost: localhost\r\n\r\n");
  });
  socket.setTimeout(MAX_WAIT_MS, () => socket.destroy());
  socket.setEncoding("utf8").on("data", (text: string) => {
    reply += text;
  });
  socket
    .on("error", () => undefined)
    .on("close", () => {
      const [, pid] = /"pid":(\d+)/.exec(reply) ?? [];
      const who = pid === undefined ? "another program" : `the server of process ${pid}`;
      resolve(isListening ? who : undefined);
    });
  return promise;
}
