/** `modhost run` with several processes: the supervisor, and what a process of its own is given. */
import { readConfig } from "../host/reading.ts";
import type { HostOptions } from "../host.ts";
import { handOverText } from "../operations/server.ts";
import { serverOf } from "../ports/lent.ts";
import type { HeldSocket, Member } from "../processes/member.ts";
import { Supervisor } from "../processes/supervisor.ts";
import type { LogLevel } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { LogSettings } from "../util/log.ts";
import type { CommandContext } from "./command.ts";
import { inheritedSockets } from "./handover/activation.ts";
import { hostOptions } from "./hosted.ts";
import { serve } from "./serve.ts";
import { ServiceManager } from "./service_manager.ts";

/** Meant for the process that was started with them. */
const ownVariables = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/** Keeps so many processes serving until a signal ends them, and gives the exit code. */
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
    failed: (reason) => log("warn", `The service manager is not told how the server is: ${reason}`),
  });
  const config = await readConfig({ ...hostOptions(context, context.args), env });
  const supervisor = new Supervisor({
    count,
    command: ownCommand(),
    env: {
      ...Object.fromEntries(Object.entries(env).filter(([name]) => !ownVariables.includes(name))),
      // The first process gets those of the service manager.
      ...(sockets.length === 0 ? {} : { LISTEN_PID: String(process.pid) }),
    },
    sockets,
    inherits,
    stopTimeout: Number(config.value("stop_timeout") ?? 15) + Number(config.value("stop_delay") ?? 0),
    log,
    print: (stream, text) => void context[stream].write(text),
    started: () => manager.ready(`Serving with ${count} processes`),
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

/** What the host of one of several processes is made with, beside what the command line says. */
export async function memberOptions(member: Member, { modules = [] }: HostOptions): Promise<HostOptions> {
  const { siblings, module, sockets } = await member.begin();
  return {
    siblings,
    modules: [...modules, module],
    ...(member.isFirst
      ? sockets.length > 0
        ? { sockets: sockets.map(heldPort) }
        : {}
      : { sockets: [], log: logOf(member) }),
    successor: () => {
      const reason = "it has several processes: reload its modules, or restart it";
      return Promise.reject(new ModhostError("CHANGE_REFUSED", { what: handOverText, reason }));
    },
  };
}

const heldPort = ({ name, asked, handle }: HeldSocket) => ({ name, asked, server: serverOf(handle), waiting: [] });

/** Lines go to the first process, which writes them with its own. */
const logOf = ({ link }: Member): LogSettings => ({
  format: "json",
  destination: { write: (line: string) => link.channel.tell("log", line) },
});

/** As this process was started. A debugger is for one process. */
function ownCommand(): [string, ...string[]] {
  const options = process.execArgv.filter((option) => !option.startsWith("--inspect"));
  return [process.execPath, ...options, ...process.argv.slice(1)];
}
