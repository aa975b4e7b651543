/** Commands as `node:diagnostics_channel` tells of them. */
import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import type { CommandTrace, ResponseFields } from "../../../core/types.ts";

const commands = tracingChannel<CommandTrace>("modhost:command");

/** A command while somebody traces it. */
export interface TracedCommand {
  /** Runs it, and what its body reads later, within what listeners bind to it. */
  run(answer: () => Promise<ResponseFields>): Promise<ResponseFields>;
  failed(thrown: unknown): void;
  /** It has ended; what is said after the first call counts no more. */
  over(): void;
}

/** Undefined while nobody listens. */
export function commandTrace(command: string): TracedCommand | undefined {
  if (!commands.hasSubscribers) return undefined;
  const trace: CommandTrace = { command, error: undefined };
  let isOver = false;
  return {
    run: (answer) =>
      commands.start.runStores(trace, async () => {
        const within = AsyncLocalStorage.snapshot();
        const fields = await answer();
        bindBody(fields.body, within);
        return fields;
      }),
    failed(thrown) {
      trace.error ??= thrown;
    },
    over() {
      if (isOver) return;
      isOver = true;
      if (trace.error !== undefined) commands.error.publish(trace);
      commands.asyncStart.publish(trace);
      commands.asyncEnd.publish(trace);
    },
  };
}

/** The body is read by whoever sends it: what it reads of the node belongs to the command. */
function bindBody(body: ResponseFields["body"], within: <T>(run: () => T) => T): void {
  if (typeof body !== "object" || body === null || !("next" in body) || typeof body.next !== "function") return;
  const { next } = body;
  body.next = (...values: []) => within(() => next.apply(body, values));
}
