import { createHost, type Host } from "../host.ts";
import { planLines } from "../operations/plan_text.ts";
import type { Change } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { stackOf } from "../util/stack.ts";
import { appAddresses, portText } from "./addresses.ts";
import { changeText } from "./admin/change.ts";
import type { Command } from "./command.ts";
import { inheritedSockets } from "./handover/activation.ts";
import { filesArgument, hostOptions, httpOf, labelOf } from "./hosted.ts";
import { columns, type Output } from "./output.ts";
import { type Service, serve } from "./serve.ts";
import { announceStop, type StopProgress } from "./stopping.ts";
import { watchLoop } from "./watchdog.ts";

export const run: Command = {
  name: "run",
  arguments: filesArgument,
  help: "Start the server: with what the configuration names, or just these modules and folders of web pages",
  options: {
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
    const host = createHost({
      ...hostOptions(context, context.args),
      sockets: inheritedSockets(context.env),
      ...(context.options.watch === true ? { watch } : {}),
    });
    const start = async () => {
      await host.start();
      const seconds = Number(host.config.value("loop_watchdog"));
      if (seconds > 0) watchLoop({ seconds, exits: host.config.value("loop_watchdog_exit") === true });
      if (host.state === "running") announce(host, context.output);
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
        progress = announceStop(host, context.output, signal);
      },
      reload: () => void reload(host, context.output),
    });
  },
};

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

/** Tells what is served where. */
function announce(host: Host, output: Output): void {
  const apps = appAddresses(httpOf(host)?.routes() ?? [], host.listening());
  const failed = host.modules().filter((state) => state.status === "failed");
  const data = host.config.value("data_path");
  const config = host.config.file;
  const notes = failed.map(({ name, host, note }) => ({ name, host, note }));
  output.show({ event: "started", apps, ports: host.listening(), data, config, failed: notes }, () =>
    [
      output.paint("bold", apps.length === 0 ? "modhost runs, and serves no app" : "modhost serves"),
      "",
      columns(
        apps.map(({ name, urls }) => [name, ...urls]),
        "  ",
      ),
      "",
      columns(
        [
          ["ports", host.listening().map(portText).join(", ") || "none"],
          ["data", String(data)],
          ["config", config ?? "none"],
        ],
        "  ",
      ),
      ...failed.map((state) => output.paint("red", `  failed  ${labelOf(state)}: ${state.note ?? ""}`)),
      "",
      "Stop with Ctrl+C.",
    ].join("\n"),
  );
}
