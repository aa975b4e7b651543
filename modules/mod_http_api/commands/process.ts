/** The program that the node runs in. */
import { type Commands, defineCommand, nothing, stream } from "../rpc/command.ts";
import { installedPackages } from "../rpc/packages.ts";
import { fields } from "../rpc/shape.ts";

export const commands = {
  shutdown: defineCommand({
    help: "Stops the node and the host that it runs in.",
    returns: nothing,
    run({ operator }) {
      operator.stop();
    },
  }),
  "version/deps": defineCommand({
    help: "Lists the packages that are installed, this one first.",
    returns: stream(fields("Dependency", { Path: "string", Version: "string", ReplacedBy: "string", Sum: "string" })),
    async *run() {
      for (const { name, version, integrity } of await installedPackages()) {
        yield { Path: name, Version: version, ReplacedBy: "", Sum: integrity };
      }
    },
    text: ({ Path, Version }) => `${Path}@${Version}\n`,
  }),
} satisfies Commands;
