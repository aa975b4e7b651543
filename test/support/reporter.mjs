/**
 * Reporter for pipes and logs: a dot for each test, each failure in full as it happens, and at the
 * end the counts and where the failures are. It takes the events of Node's test runner and yields
 * text.
 */
import { relative } from "node:path";
import { inspect } from "node:util";

const lineWidth = 100;

/** Maximum number of characters of a failure: the rest of a compared HTML page does not help. */
const causeLength = 3000;

/** Whether a suite failed only because of its tests, which are reported themselves. */
function failedByTests({ details }) {
  return details.error?.failureType === "subtestsFailed";
}

/** Names a failure and its position. */
function titleOf({ name, file, line, column }) {
  const position = file === undefined ? "" : ` (${relative(process.cwd(), file)}:${line}:${column})`;
  return `failed: ${name}${position}`;
}

/** Describes a failure and its cause. */
function describeFailure(failure) {
  const { error } = failure.details;
  const cause = error?.cause ?? error;
  const text = typeof cause === "string" ? cause : (cause?.stack ?? inspect(cause));
  return `\n${titleOf(failure)}\n${text.slice(0, causeLength)}${describeEnd(error)}\n`.replaceAll("\n", "\n  ");
}

/** Describes how the process of a whole file ended. Empty for a test. */
function describeEnd({ exitCode, signal } = {}) {
  if (typeof signal === "string") return `\nsignal ${signal} ended its process`;
  return typeof exitCode === "number" ? `\nits process ended with exit code ${exitCode}` : "";
}

export default async function* report(events) {
  const failures = [];
  const counts = [];
  let column = 0;
  for await (const { type, data } of events) {
    if (type === "test:pass" || type === "test:fail") {
      if (data.details?.type === "suite" && (type === "test:pass" || failedByTests(data))) continue;
      if (type === "test:fail") {
        failures.push(titleOf(data));
        yield `X${describeFailure(data)}\n`;
        column = 0;
        continue;
      }
      yield data.skip !== undefined || data.todo !== undefined ? "-" : ".";
      column = (column + 1) % lineWidth;
      if (column === 0) yield "\n";
    } else if (type === "test:diagnostic" && data.nesting === 0) {
      counts.push(data.message);
    } else if (type === "test:stderr") {
      yield data.message;
    }
  }
  yield `\n\n${failures.map((title) => `${title}\n`).join("")}${counts.join("\n")}\n`;
}
