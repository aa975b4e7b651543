/** Commands that are declared in full while their work is still to come: calls that are right are answered with 501. */
import type { AnyCall, Command, Commands, Group } from "../command.ts";
import { type FailureKind, failure, failures, NodeError } from "../node/errors.ts";

type Parts = "group" | "arguments" | "options";

/** A declaration without `run`; it becomes the argument of `defineCommand` when there is one. */
export type Later = Omit<Command, "run" | "text" | "encodings" | "later" | Parts> &
  Partial<Pick<Command, Parts>> & {
    /** The command needs the network, and says so in the reference's way where there is none. */
    readonly offline?: FailureKind;
  };

/** Commands and groups by path; the commands throw NOT_YET, or what `offline` says. */
export function later(declarations: Readonly<Record<string, Later | Group>>): Commands {
  return Object.fromEntries(
    Object.entries(declarations).map(([path, entry]) => [path, "returns" in entry ? waiting(path, entry) : entry]),
  );
}

function waiting(path: string, { group, arguments: args = [], options = {}, offline, ...rest }: Later): Command {
  const run = ({ node }: AnyCall) => {
    if (offline !== undefined && !node.online) throw new NodeError(failures.OFFLINE_COMMAND, { kind: offline });
    throw failure("NOT_YET", { command: path });
  };
  return { ...rest, group, arguments: args, options, encodings: {}, later: true, run };
}
