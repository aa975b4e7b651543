import { createHost, type Host } from "../host.ts";
import { appAddresses, portText } from "./addresses.ts";
import type { Command } from "./command.ts";
import { filesArgument, hostOptions, httpOf, labelOf } from "./hosted.ts";
import { columns, type Output } from "./output.ts";
import { serve } from "./serve.ts";

export const run: Command = {
  name: "run",
  arguments: filesArgument,
  help: "Serve what the configuration says, or just these modules and folders of web pages",
  async run(context) {
    const host = createHost(hostOptions(context, context.args));
    const start = async () => {
      await host.start();
      if (host.state === "running") announce(host, context.output);
    };
    return serve({ start, stop: () => host.stop(), ended: host.ended, report: (error) => host.report(error) });
  },
};

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
