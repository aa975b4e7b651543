/**
 * Reporter for `--times`: prints how many seconds each file took, the longest first, and the sum.
 */
import { relative } from "node:path";

export default async function* report(events) {
  const files = [];
  for await (const { type, data } of events) {
    if (type === "test:summary" && data.file !== undefined) files.push(data);
  }
  files.sort((one, other) => other.duration_ms - one.duration_ms);
  const line = (milliseconds, name) => `${(milliseconds / 1000).toFixed(1).padStart(8)} ${name}\n`;
  yield "\n";
  for (const { file, duration_ms } of files) yield line(duration_ms, relative(process.cwd(), file));
  yield line(
    files.reduce((sum, { duration_ms }) => sum + duration_ms, 0),
    "s in all files together",
  );
}
