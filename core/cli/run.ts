import { constants } from "node:os";
import { loadConfig } from "../config/index.ts";
import { createHost, type Host } from "../host.ts";
import { installHooks } from "../module/versions.ts";
import { appAddresses, portText } from "./addresses.ts";
import type { Command, CommandContext } from "./command.ts";
import { httpOf, labelOf } from "./hosted.ts";
import { columns, type Output } from "./output.ts";
import { moduleOf } from "./site.ts";

type StopSignal = "SIGINT" | "SIGTERM";

const stopSignals: readonly StopSignal[] = ["SIGINT", "SIGTERM"];

/** npm and shells pass a terminal's Ctrl+C on to programs that got it already: an echo this soon is no second one. */
const echo = 300;

export const run: Command = {
  name: "run",
  arguments: "[FILE|FOLDER…]",
  help: "Serve what the configuration says, or just these modules and folders of web pages",
  async run(context) {
    const host = await hostOf(context);
    const stopped = stopOnSignal();
    const started = host.start().then(() => true);
    if (await Promise.race([started, stopped.then(() => false)])) announce(host, context.output);
    await stopped;
    await host.stop();
    return 0;
  },
};

async function hostOf({ args, configPath, cwd, env }: CommandContext): Promise<Host> {
  if (args.length === 0) return createHost({ configPath, cwd, env });
  const modules = args.map((argument) => moduleOf(argument, cwd));
  installHooks();
  const config = await loadConfig({ cwd, env, path: configPath, search: false });
  return createHost({ config, modules, cwd, env });
}

/** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
function stopOnSignal(): Promise<void> {
  return new Promise((resolve) => {
    let first: number | undefined;
    for (const signal of stopSignals) {
      process.on(signal, () => {
        if (first === undefined) {
          first = performance.now();
          resolve();
        } else if (performance.now() - first > echo) {
          process.exit(128 + constants.signals[signal]);
        }
      });
    }
  });
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
