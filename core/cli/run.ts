import { variableOf } from "../config/index.ts";
import { createHost, type Host } from "../host.ts";
import { planLines } from "../operations/plan_text.ts";
import type { Change } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { stackOf } from "../util/stack.ts";
import { changeText } from "./admin/change.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { inheritedSockets } from "./handover/activation.ts";
import { filesArgument, hostOptions } from "./hosted.ts";
import type { Output } from "./output.ts";
import { type Service, serve } from "./serve.ts";
import { announceStop, type StopProgress } from "./stopping.ts";
import { watchLoop } from "./watchdog.ts";
import { announce } from "./welcome.ts";

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
    inspect: {
      type: "string",
      value: "[HOST:PORT]",
      help: "Let a debugger attach, at 127.0.0.1:9229 unless told otherwise",
    },
    "inspect-brk": { type: "string", value: "[HOST:PORT]", help: "The same, and wait for it before anything runs" },
  },
  async run(context) {
    const { output } = context;
    const watch = (change: Change) => output.show({ event: "changed", change }, () => changeText(output, change));
    const isQuiet = context.options.quiet === true;
    const host = createHost({
      ...hostOptions({ ...context, env: environmentOf(context) }, context.args),
      sockets: inheritedSockets(context.env),
      ...(context.options.watch === true ? { watch } : {}),
    });
    const start = async () => {
      await host.start();
      const seconds = Number(host.config.value("loop_watchdog"));
      if (seconds > 0) watchLoop({ seconds, exits: host.config.value("loop_watchdog_exit") === true });
      if (host.state === "running" && !isQuiet) announce(host, output);
    };
    let by: string | undefined;
    let progress: StopProgress | undefined;
    const service: Service = {
      start,
      stop() {
        // Who ends a running server is on record; without a signal it was an exception that nobody caught.
        const asked = by ?? (host.state === "running" ? "uncaught exception" : undefined);
        return host.stop(asked === undefined ? {} : { by: asked }).finally(() => progress?.ended());
      },
      ended: host.ended,
      report: (error) => host.report(error),
      contain: (error) => host.contain(error),
      exiting: (error) => host.log.error("The process ends without a drain: %s", stackOf(error)),
    };
    return serve(service, {
      interrupted(signal) {
        by = `signal ${signal}`;
        if (!isQuiet) progress = announceStop(host, output, signal);
      },
      reload: () => void reload(host, output),
    });
  },
};

/** The options of the command line that stand for some of the configuration, over what is configured. */
function environmentOf({ options, env }: CommandContext): NodeJS.ProcessEnv {
  const { port, quiet } = options;
  if (port !== undefined && !/^\d{1,5}$/.test(String(port)))
    throw new UsageError(`--port takes a number of a port, not ${port}`);
  return {
    ...env,
    ...(port === undefined ? {} : { [variableOf("http_ports")]: String(port) }),
    ...(quiet === true ? { [variableOf("http_log")]: "false", [variableOf("log_level")]: "warn" } : {}),
  };
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
