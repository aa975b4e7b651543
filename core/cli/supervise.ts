/**
 * `modhost run` with several processes: the supervisor, and the options of the hosts in its
 * processes.
 */
import { readConfig } from "../host/reading.ts";
import type { HostOptions } from "../host.ts";
import { handOverText } from "../operations/server.ts";
import { Supervisor } from "../processes/supervisor.ts";
import type { Worker } from "../processes/worker.ts";
import { ownCommand } from "../relay/ipc_child.ts";
import type { LogLevel } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { LogSettings } from "../util/log.ts";
import { serverOf } from "../util/patches/node/handles.ts";
import { counted } from "../util/text.ts";
import type { CommandContext } from "./command.ts";
import { hostOptions } from "./hosted.ts";
import { serve } from "./serve.ts";
import { ServiceManager } from "./service_manager.ts";
import { inheritedSockets } from "./takeover/activation.ts";

/** Variables that are only for the process that was started with them. */
const ownVariables = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/** Runs this many processes until a signal ends them, and returns the exit code. */
export async function supervise(context: CommandContext, count: number): Promise<number> {
  const { env, stdout, stderr } = context;
  const sockets = inheritedSockets(env).flatMap((socket) => ("fd" in socket ? [socket.fd] : []));
  const inherits = stdout.isTTY === true;
  const log = (level: LogLevel, msg: string) => {
    const line = inherits ? `modhost: ${msg}` : JSON.stringify({ level, time: new Date().toISOString(), msg });
    stderr.write(`${line}\n`);
  };
  const manager = new ServiceManager({
    env,
    failed: (reason) => log("warn", `Cannot notify the service manager: ${reason}`),
  });
  const config = await readConfig({ ...hostOptions(context, context.args), env });
  const supervisor = new Supervisor({
    count,
    command: ownCommand(),
    env: {
      ...Object.fromEntries(Object.entries(env).filter(([name]) => !ownVariables.includes(name))),
      // The primary gets the sockets of the service manager.
      ...(sockets.length === 0 ? {} : { LISTEN_PID: String(process.pid) }),
    },
    sockets,
    inherits,
    silence: Number(config.value("worker_timeout") ?? 30),
    stopTimeout: Number(config.value("stop_timeout") ?? 15) + Number(config.value("stop_delay") ?? 0),
    log,
    print: (stream, text) => void context[stream].write(text),
    started: () => manager.ready(`Serving with ${counted(count, "process", "processes")}`),
  });
  const code = await serve(
    {
      start: () => supervisor.start(),
      async stop() {
        void manager.stopping("Stopping");
        await supervisor.stop();
        await manager.close();
      },
      ended: supervisor.ended,
      report: (error) => supervisor.report(error),
    },
    {
      interrupted: (signal) => {
        supervisor.signal = signal;
      },
      forced() {
        supervisor.kill();
        return 1;
      },
      reload: () => void supervisor.ask("reload"),
      reopen: () => void supervisor.ask("reopen"),
    },
  );
  return code === 0 ? supervisor.code : code;
}

/**
 * Returns the options of a host in one of several processes, in addition to those of the command
 * line.
 */
export async function workerOptions(worker: Worker, { modules = [] }: HostOptions): Promise<HostOptions> {
  const { siblings, module, ports } = await worker.begin();
  const sockets = ports.map(({ name, requested, handle }) => {
    return { name, requested, server: serverOf(handle), waiting: [] };
  });
  return {
    siblings,
    modules: [...modules, module],
    ...(worker.isPrimary ? (sockets.length > 0 ? { sockets } : {}) : { sockets: [], log: logOf(worker) }),
    prepareNext: () => {
      const reason = "it has several processes: reload its modules, or restart it";
      return Promise.reject(new ModhostError("CHANGE_REFUSED", { what: handOverText, reason }));
    },
  };
}

/** Sends log lines to the primary, which writes them with its own. */
const logOf = ({ supervisor }: Worker): LogSettings => ({
  format: "json",
  destination: { write: (line: string) => supervisor.notify("log", line) },
});
