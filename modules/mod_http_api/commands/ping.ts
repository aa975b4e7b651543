/** `ping`: checks whether and how fast a peer responds. */
import { type Commands, readCommand, stream } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";
import { wireNames } from "./shapes.ts";

export const commands = {
  ping: readCommand({
    help: "Sends echo requests to a peer.",
    arguments: [
      {
        name: "peer ID",
        required: true,
        variadic: true,
        stdin: "first",
        help: "The peer; further arguments are ignored.",
      },
    ],
    options: { count: { type: "int", aliases: ["n"], default: 10, help: "Number of requests." } },
    endless: true,
    returns: stream(
      fields("PingResult", {
        Success: "bool",
        /** Round-trip time; 0 for an object that only carries text. */
        Time: "duration",
        Text: "string",
      }),
    ),
    async *run({ node, arguments: { "peer ID": given }, options: { count }, signal }) {
      for await (const result of node.ping(given[0] as string, { count, signal })) yield wireNames(result);
    },
    text({ Success, Time, Text }) {
      if (Text !== "") return `${Text}\n`;
      return Success ? `Pong received: time=${(Time / 1e6).toFixed(2)} ms\n` : "Pong failed\n";
    },
  }),
} satisfies Commands;
