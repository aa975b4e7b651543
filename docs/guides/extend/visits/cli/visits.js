/** `modhost visits`: shows the visits that the running server has counted. */
import { adminSocket, columns, send, socketOption, UsageError, withServer } from "modhost/cli";

/** @typedef {readonly { readonly app: string, readonly visits: number }[]} Visits */

/** @type {import("modhost/cli").Command} */
export const command = {
  name: "visits",
  help: "Show how many pages each app has shown",
  options: {
    reset: { type: "boolean", help: "Start to count from 0 again" },
    app: { type: "string", value: "NAME", help: "With --reset: of this app alone" },
    ...socketOption,
  },
  about: "It asks the server that runs on the configuration. The exit code is 3 when none runs.",
  run(context) {
    const { options, output } = context;
    if (options.app !== undefined && options.reset !== true) throw new UsageError("--app goes with --reset");
    return withServer(context, async () => {
      const socket = await adminSocket(context, options.socket);
      const counts = /** @type {Visits} */ ((await call(socket, options)).value);
      output.show(counts, () =>
        counts.length === 0
          ? "No visits yet."
          : columns([["APP", "VISITS"], ...counts.map(({ app, visits }) => [app, String(visits)])]),
      );
      return 0;
    });
  },
};

/**
 * @param {string} socket
 * @param {import("modhost/cli").CommandContext["options"]} options
 */
function call(socket, { reset, app }) {
  if (reset !== true) return send(socket, "GET", "/visits");
  return send(socket, "POST", "/visits/reset", app === undefined ? {} : { app });
}
