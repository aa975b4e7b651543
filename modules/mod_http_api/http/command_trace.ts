/** Traces commands through `node:diagnostics_channel`. */
import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import type { CommandTrace, ResponseFields } from "../../../core/types.ts";

const commands = tracingChannel<CommandTrace>("modhost:command");

/** A traced command. */
export interface TracedCommand {
  /** Runs the command, and later reads of its body, in the context that subscribers have bound. */
  run(respond: () => Promise<ResponseFields>): Promise<ResponseFields>;
  failed(thrown: unknown): void;
  /** Ends the trace. Later calls have no effect. */
  over(): void;
}

/** Returns undefined if the channel has no subscribers. */
export function commandTrace(command: string): TracedCommand | undefined {
  if (!commands.hasSubscribers) return undefined;
  const trace: CommandTrace = { command, error: undefined };
  let isOver = false;
  return {
    run: (respond) =>
      commands.start.runStores(trace, async () => {
        const within = AsyncLocalStorage.snapshot();
        const fields = await respond();
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

/**
 * The host reads the body when it sends the response. This function makes those reads run in the
 * context of the command.
 */
function bindBody(body: ResponseFields["body"], within: <T>(run: () => T) => T): void {
  if (typeof body !== "object" || body === null || !("next" in body) || typeof body.next !== "function") return;
  const { next } = body;
  body.next = (...values: []) => within(() => next.apply(body, values));
}
