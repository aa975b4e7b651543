import { variableOf } from "../config/index.ts";
import { httpOf } from "../host/http_module.ts";
import type { Host, HostOptions } from "../host.ts";
import { planLines } from "../operations/plan_text.ts";
import { WORKER_VARIABLE } from "../processes/messages.ts";
import type { Worker } from "../processes/worker.ts";
import type { Change } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { counted } from "../util/text.ts";
import { portText } from "./addresses.ts";
import { changeText } from "./admin/change.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { filesArgument, hostOptions, withHost } from "./hosted.ts";
import type { Output } from "./output.ts";
import { RunService } from "./run_service.ts";
import { serve } from "./serve.ts";
import { ServiceManager } from "./service_manager.ts";
import { announceStop, type StopProgress } from "./stopping.ts";
import { inheritedSockets } from "./takeover/activation.ts";
import { type PreviousProcess, previousProcess } from "./takeover/previous_process.ts";
import { takeOver } from "./takeover/request.ts";
import { watchLoop } from "./watchdog.ts";
import { announce } from "./welcome.ts";
import { workersOption, workersWanted } from "./workers_wanted.ts";

export const run: Command = {
  name: "run",
  arguments: filesArgument,
  help: "Start the server with the configuration, or only with these modules and folders of web pages",
  options: {
    port: {
      type: "string",
      short: "p",
      value: "PORT",
      help: "Serve plain HTTP on this port instead of the configured ones; 0 chooses a free port",
    },
    quiet: {
      type: "boolean",
      short: "q",
      help: "Print only warnings and errors: no addresses and no request log",
    },
    watch: {
      type: "boolean",
      help: "Reload modules when their files are saved, and apply a changed config file; failures are shown here, and in the browser",
    },
    takeover: {
      type: "boolean",
      help: "Replace the running server without downtime: it starts this program, hands over its ports, and ends. If none runs, just start",
    },
    wait: {
      type: "string",
      value: "SECONDS",
      help: "With --takeover: seconds to wait for long requests before the handover; default 60",
    },
    workers: {
      type: "string",
      value: "N",
      help: "Number of server processes, or auto for one per processor; default: the option workers, else 1",
    },
    inspect: {
      type: "string",
      value: "[HOST:PORT]",
      help: "Let a debugger attach, by default at 127.0.0.1:9229",
    },
    "inspect-brk": {
      type: "string",
      value: "[HOST:PORT]",
      help: "Like --inspect, and wait for the debugger before any code runs",
    },
  },
  async run(context) {
    if (context.options.wait !== undefined && context.options.takeover !== true)
      throw new UsageError("--wait requires --takeover");
    if (context.options.takeover === true) {
      const code = await takeOver(context);
      if (code !== undefined) return code;
    }
    const isWorker = context.env[WORKER_VARIABLE] !== undefined;
    if (!isWorker) {
      const env = environmentOf(context);
      const count = await workersWanted(hostOptions(context, context.args), env);
      if (count > 1) {
        refuseTakeover(context.env);
        return (await import("./supervise.ts")).supervise({ ...context, env }, count);
      }
    }
    const worker = isWorker ? (await import("../processes/worker.ts")).workerOf(context.env) : undefined;
    return runHost(context, worker);
  },
};

/** Runs a host in this process, alone or as one of several, and returns the exit code. */
async function runHost(context: CommandContext, worker: Worker | undefined): Promise<number> {
  const { output, env } = context;
  const manager = new ServiceManager({
    env,
    failed: (reason) => service.host.log.warn("Cannot notify the service manager: %s", reason),
  });
  const service = await serviceOf(context, manager, worker);
  const isShown = context.options.quiet !== true && worker?.isPrimary !== false;
  let progress: StopProgress | undefined;
  const interrupted = (signal: string, by = `signal ${signal}`) => {
    service.by = by;
    if (isShown) progress = announceStop(service.host, output, signal);
  };
  const applied = async () => {
    await manager.reloading("Applying the configuration");
    await reload(service.host, output);
    if (service.host.state === "running") await manager.ready(servedText(service.host));
  };
  worker?.attach({
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
        await worker?.close();
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
      // A terminal sends signals to all processes, so workers wait for the supervisor's
      // instructions.
      ...(worker === undefined ? {} : { ends: ["SIGTERM"] as const }),
    },
  );
}

/** Creates the service of this process, which is not started yet. */
async function serviceOf(context: CommandContext, manager: ServiceManager, worker: Worker | undefined) {
  const { output, env } = context;
  // Only this command needs a host, so others do not load it.
  const { createHost } = await import("../host.ts");
  // This removes the variable of a takeover, which is no option of the configuration.
  const previous = previousProcess(env);
  const configured = hostOptions({ ...context, env: environmentOf(context) }, context.args);
  const own = worker === undefined ? {} : await (await import("./supervise.ts")).workerOptions(worker, configured);
  const options = { ...configured, ...own };
  const isPrimary = worker?.isPrimary !== false;
  const given =
    previous === undefined ? { sockets: options.sockets ?? inheritedSockets(env) } : await followed(previous, options);
  const watch = (change: Change) => output.show({ event: "changed", change }, () => changeText(output, change));
  const watched = context.options.watch === true && isPrimary ? { watch } : {};
  let isWatched = false;
  const started = async (host: Host) => {
    const seconds = Number(host.config.value("loop_watchdog"));
    if (seconds > 0 && !isWatched) {
      isWatched = true;
      watchLoop({ seconds, exits: host.config.value("loop_watchdog_exit") === true });
    }
    if (context.options.quiet !== true && isPrimary) announce(host, output);
    await manager.ready(servedText(host));
    await worker?.running();
  };
  const make = (more: Partial<HostOptions>) => createHost({ ...options, ...more, ...own, ...watched });
  const leaving = () => void manager.reloading("Handing over to another process");
  return new RunService({ make, started, leaving, output, env, previous }, given);
}

/**
 * Refuses to start several processes as a takeover: the ports and states of a running server are
 * for one process.
 * @throws {Error} if a running server has started this process to take over
 */
function refuseTakeover(env: NodeJS.ProcessEnv): void {
  const previous = previousProcess(env);
  if (previous === undefined) return;
  const error = new Error("a server with several workers cannot take over from another server: stop that one first");
  previous.failed(error);
  throw error;
}

async function reopen(host: Host): Promise<void> {
  try {
    await host.reopenLogs("signal SIGUSR2");
  } catch (error) {
    host.log.error("Cannot reopen the log file, so the current file stays in use: %s", reasonOf(error));
  }
}

/**
 * Returns the environment with options of the command line that override options of the
 * configuration.
 */
function environmentOf({ options, env }: CommandContext): NodeJS.ProcessEnv {
  const { port, quiet } = options;
  const workers = workersOption(options.workers);
  if (port !== undefined && !/^\d{1,5}$/.test(String(port)))
    throw new UsageError(`--port takes a port number, not ${port}`);
  return {
    ...env,
    ...(port === undefined ? {} : { [variableOf("http_ports")]: String(port) }),
    ...(workers === undefined ? {} : { [variableOf("workers")]: workers }),
    ...(quiet === true ? { [variableOf("http_log")]: "false", [variableOf("log_level")]: "warn" } : {}),
  };
}

/**
 * Returns the ports and states of the previous process, after this one has shown that it can load
 * everything.
 */
async function followed(
  previous: PreviousProcess,
  options: HostOptions,
): Promise<Pick<HostOptions, "sockets" | "states">> {
  try {
    await withHost(options, (host) => previous.checked(host));
  } catch (error) {
    previous.failed(error);
    throw error;
  }
  const { ports, states } = await previous.begun();
  return { sockets: ports, states };
}

/** Returns the status line for the service manager. */
function servedText(host: Host): string {
  const apps =
    httpOf(host)
      ?.routes()
      .map(({ app }) => app) ?? [];
  const failed = host.modules().filter(({ status }) => status === "failed").length;
  const ports = host.listening().map(portText).join(", ") || "no port";
  return `Serving ${counted(new Set(apps).size, "app")} on ${ports}${failed === 0 ? "" : `; ${counted(failed, "module has", "modules have")} failed`}`;
}

/** Applies the changes of the configuration, and prints them or that there are none. */
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
    // A wrong value may quote secrets, so the error goes to the log, which masks them.
    host.log.error("Cannot reload the configuration: %s", reasonOf(error));
    const code = ModhostError.is(error) ? error.code : undefined;
    if (output.json) output.show({ event: "refused", code }, () => "");
  }
}
