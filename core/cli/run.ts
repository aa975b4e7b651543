import { variableOf } from "../config/index.ts";
import type { Host, HostOptions } from "../host.ts";
import { planLines } from "../operations/plan_text.ts";
import type { Member } from "../processes/member.ts";
import { WORKER } from "../processes/messages.ts";
import type { Change } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { portText } from "./addresses.ts";
import { changeText } from "./admin/change.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { inheritedSockets } from "./handover/activation.ts";
import { type Former, formerProcess } from "./handover/former.ts";
import { takeOver } from "./handover/request.ts";
import { filesArgument, hostOptions, httpOf, withHost } from "./hosted.ts";
import type { Output } from "./output.ts";
import { RunService } from "./run_service.ts";
import { serve } from "./serve.ts";
import { ServiceManager } from "./service_manager.ts";
import { announceStop, type StopProgress } from "./stopping.ts";
import { watchLoop } from "./watchdog.ts";
import { announce } from "./welcome.ts";
import { workersOption, workersWanted } from "./workers_wanted.ts";

export const run: Command = {
  name: "run",
  arguments: filesArgument,
  help: "Start the server: with what the configuration names, or just these modules and folders of web pages",
  options: {
    port: {
      type: "string",
      short: "p",
      value: "PORT",
      help: "Serve plain HTTP at this port, whatever is configured; 0 lets the system choose one",
    },
    quiet: {
      type: "boolean",
      short: "q",
      help: "Print only what goes wrong: no addresses, no requests, no log below warnings",
    },
    watch: {
      type: "boolean",
      help: "Reload modules when their files are saved, and apply a changed config file; failures are shown here, and in the browser",
    },
    takeover: {
      type: "boolean",
      help: "Take the place of the server that runs: it starts this program, hands it its ports, and ends; without one, start",
    },
    wait: {
      type: "string",
      value: "SECONDS",
      help: "With --takeover: how long requests that last may hold it up, while everything is served; default 60",
    },
    workers: {
      type: "string",
      value: "N",
      help: "Serve with so many processes, or auto: as many as there are processors; default: the option workers, else 1",
    },
    inspect: {
      type: "string",
      value: "[HOST:PORT]",
      help: "Let a debugger attach, at 127.0.0.1:9229 unless told otherwise",
    },
    "inspect-brk": { type: "string", value: "[HOST:PORT]", help: "The same, and wait for it before anything runs" },
  },
  async run(context) {
    if (context.options.wait !== undefined && context.options.takeover !== true)
      throw new UsageError("--wait goes with --takeover");
    if (context.options.takeover === true) {
      const code = await takeOver(context);
      if (code !== undefined) return code;
    }
    const isMember = context.env[WORKER] !== undefined;
    if (!isMember) {
      const env = environmentOf(context);
      const count = await workersWanted(hostOptions(context, context.args), env);
      if (count > 1) {
        refuseSuccessor(context.env);
        return (await import("./supervise.ts")).supervise({ ...context, env }, count);
      }
    }
    const member = isMember ? (await import("../processes/member.ts")).memberOf(context.env) : undefined;
    return runHost(context, member);
  },
};

/** Runs a host in this process, alone or as one of several, and gives the exit code. */
async function runHost(context: CommandContext, member: Member | undefined): Promise<number> {
  const { output, env } = context;
  const manager = new ServiceManager({
    env,
    failed: (reason) => service.host.log.warn("The service manager is not told how the server is: %s", reason),
  });
  const service = await serviceOf(context, manager, member);
  const isTold = context.options.quiet !== true && member?.isFirst !== false;
  let progress: StopProgress | undefined;
  const interrupted = (signal: string, by = `signal ${signal}`) => {
    service.by = by;
    if (isTold) progress = announceStop(service.host, output, signal);
  };
  const applied = async () => {
    await manager.reloading("Applying the configuration");
    await reload(service.host, output);
    if (service.host.state === "running") await manager.ready(servedText(service.host));
  };
  member?.attach({
    host: () => service.host,
    reload: applied,
    reopen: () => reopen(service.host),
    stop(signal) {
      if (signal !== undefined) interrupted(signal);
      void service.stop().catch((error: unknown) => service.report(error));
    },
  });
  return serve(
    {
      start: () => service.start(),
      async stop() {
        if (service.host.state === "running") void manager.stopping("Stopping");
        await service.stop();
        progress?.ended();
        await manager.close();
        member?.close();
      },
      ended: service.ended,
      report: (error) => service.report(error),
      contain: (error) => service.contain(error),
      refuse: (act) => service.refuse(act),
    },
    {
      interrupted,
      reopen: () => void reopen(service.host),
      reload: applied,
      // A terminal sends signals to all processes: the supervisor says what is to be done.
      ...(member === undefined ? {} : { ends: ["SIGTERM"] as const }),
    },
  );
}

/** The server of this process, which has not begun yet. */
async function serviceOf(context: CommandContext, manager: ServiceManager, member: Member | undefined) {
  const { output, env } = context;
  // Loaded here alone: other commands have no use for a host.
  const { createHost } = await import("../host.ts");
  // Its variable is none of the configuration's.
  const former = formerProcess(env);
  const configured = hostOptions({ ...context, env: environmentOf(context) }, context.args);
  const own = member === undefined ? {} : await (await import("./supervise.ts")).memberOptions(member, configured);
  const options = { ...configured, ...own };
  const isFirst = member?.isFirst !== false;
  const given =
    former === undefined ? { sockets: options.sockets ?? inheritedSockets(env) } : await followed(former, options);
  const watch = (change: Change) => output.show({ event: "changed", change }, () => changeText(output, change));
  const watched = context.options.watch === true && isFirst ? { watch } : {};
  let isWatched = false;
  const started = async (host: Host) => {
    const seconds = Number(host.config.value("loop_watchdog"));
    if (seconds > 0 && !isWatched) {
      isWatched = true;
      watchLoop({ seconds, exits: host.config.value("loop_watchdog_exit") === true });
    }
    if (context.options.quiet !== true && isFirst) announce(host, output);
    await manager.ready(servedText(host));
    await member?.running();
  };
  const make = (more: Partial<HostOptions>) => createHost({ ...options, ...more, ...own, ...watched });
  const leaving = () => void manager.reloading("Handing over to another process");
  return new RunService({ make, started, leaving, output, env, former }, given);
}

/** @throws {Error} when a server is to be followed that runs: its ports and states are for one process */
function refuseSuccessor(env: NodeJS.ProcessEnv): void {
  const former = formerProcess(env);
  if (former === undefined) return;
  const error = new Error("a server of several processes cannot take the place of another: stop that one first");
  former.failed(error);
  throw error;
}

async function reopen(host: Host): Promise<void> {
  try {
    await host.reopenLogs("signal SIGUSR2");
  } catch (error) {
    host.log.error("The log is not opened again, and goes on in the file that it has: %s", reasonOf(error));
  }
}

/** The options of the command line that stand for some of the configuration, over what is configured. */
function environmentOf({ options, env }: CommandContext): NodeJS.ProcessEnv {
  const { port, quiet } = options;
  const workers = workersOption(options.workers);
  if (port !== undefined && !/^\d{1,5}$/.test(String(port)))
    throw new UsageError(`--port takes a number of a port, not ${port}`);
  return {
    ...env,
    ...(port === undefined ? {} : { [variableOf("http_ports")]: String(port) }),
    ...(workers === undefined ? {} : { [variableOf("workers")]: workers }),
    ...(quiet === true ? { [variableOf("http_log")]: "false", [variableOf("log_level")]: "warn" } : {}),
  };
}

/** What the server before this process leaves, once this one has shown that it loads everything. */
async function followed(former: Former, options: HostOptions): Promise<Pick<HostOptions, "sockets" | "states">> {
  try {
    await withHost(options, (host) => former.checked(host));
  } catch (error) {
    former.failed(error);
    throw error;
  }
  const { ports, states } = await former.begun();
  return { sockets: ports, states };
}

/** One line for whoever looks after the service. */
function servedText(host: Host): string {
  const apps =
    httpOf(host)
      ?.routes()
      .map(({ app }) => app) ?? [];
  const failed = host.modules().filter(({ status }) => status === "failed").length;
  const ports = host.listening().map(portText).join(", ") || "no port";
  return `Serving ${new Set(apps).size} apps on ${ports}${failed === 0 ? "" : `; ${failed} modules have failed`}`;
}

/** Applies what has changed in the configuration, and tells what that was, or why there was nothing. */
async function reload(host: Host, output: Output): Promise<void> {
  try {
    const plan = await host.apply({ by: "signal SIGHUP" });
    const lines = planLines(plan);
    output.show({ event: "reloaded", plan }, () =>
      lines.length === 0
        ? "\nThe configuration has not changed."
        : ["\nThe configuration has changed:", ...lines.map((line) => `  ${line}`)].join("\n"),
    );
  } catch (error) {
    // The log takes secrets out, which a wrong value may quote.
    host.log.error("The configuration is not reloaded: %s", reasonOf(error));
    const code = ModhostError.is(error) ? error.code : undefined;
    if (output.json) output.show({ event: "refused", code }, () => "");
  }
}
